"""What would help pods that kube-scheduler found no node for: every remedy, carried out on recorded objects, does."""

from __future__ import annotations

import pytest
from tests.applied_remedies import cluster_of, schedules
from tests.parity.recordings import cases, families

from kubesched import config
from kubesched.ask.remedies import remedies
from kubesched.framework.profile import ProfileError

PODS_OF_A_FAMILY = 8


@pytest.mark.parametrize("family", families("decisions"))
def test_every_remedy_for_a_recorded_pod_helps(family: str) -> None:
    asked = 0
    for recording in cases("decisions", family):
        case = recording["case"]
        try:
            settings = config.from_plain(case["config"]) if case.get("config") else config.default()
            cluster = cluster_of(case["objects"], settings)
        except (config.ConfigError, ProfileError):
            continue
        unplaced = [pod["pod"] for pod in recording["result"].get("pods", ()) if pod["outcome"] == "unschedulable"]
        for key in unplaced:
            pod = cluster.pods[key]
            if pod.spec.node_name or cluster.engine.decide(pod).node:
                continue  # of a case in which pods come one after another
            asked += 1
            for remedy in remedies(cluster, pod).found:
                assert schedules(case["objects"], key, remedy, settings), f"{case['id']} {key}: {remedy.text}"
        if asked >= PODS_OF_A_FAMILY:
            break
    assert asked or family == "images"

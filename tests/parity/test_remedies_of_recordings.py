"""What would help pods that kube-scheduler found no node for: every remedy, carried out on recorded objects, does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.applied_remedies import cluster_of, schedules
from tests.parity.recordings import cases, families

from kubesched import config
from kubesched.api.well_known import is_owned_label
from kubesched.ask.remedies import Remedy, RemedyKind, remedies
from kubesched.framework.profile import ProfileError

PODS_OF_A_FAMILY = 90
"""Of some thirty families: more than two thousand pods."""


def owned_labels(remedy: Remedy) -> Iterator[str]:
    """Labels of nodes that the remedy sets though Kubernetes or a provider owns them."""
    for change in remedy.changes:
        for operation in change.patch or () if change.kind == "Node" else ():
            head, _, key = operation.path.partition("/metadata/labels/")
            if not head and is_owned_label(key.replace("~1", "/").replace("~0", "~")):
                yield key


def evicted(remedy: Remedy) -> list[str]:
    """The pods that somebody is told to evict; what preemption does by itself is the scheduler's business."""
    if remedy.steps[-1].sort is not RemedyKind.EVICT:
        return []
    deleted = [change for change in remedy.changes if (change.verb, change.kind) == ("delete", "Pod")]
    return [f"{change.namespace}/{change.name}" for change in deleted]


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
            found = remedies(cluster, pod).found
            assert len({remedy.text for remedy in found}) == len(found), f"{case['id']} {key}: something twice"
            for remedy in found:
                assert schedules(case["objects"], key, remedy, settings), f"{case['id']} {key}: {remedy.text}"
                assert not list(owned_labels(remedy)), f"{case['id']} {key}: {remedy.text}"
                for victim in evicted(remedy):
                    assert cluster.pods[victim].priority <= pod.priority, f"{case['id']} {key}: {remedy.text}"
        if asked >= PODS_OF_A_FAMILY:
            break
    assert asked or family == "images"

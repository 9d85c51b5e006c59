"""Beside another scheduler, and a recording of what was done: neither changes anything in the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import PODS, PRIORITY_CLASSES

SECRET = "the-token-of-the-cluster"


def test_shadow_judges_every_pod_that_another_binds_and_writes_nothing(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    cluster = start_cluster(tls=True, token=SECRET)
    cluster.add_node("only", cpu="1", labels={"disk": "ssd"})
    cluster.add_node("other", cpu="1")
    cluster.add_pod("agreed", nodeSelector={"disk": "ssd"})
    cluster.add_pod("objected", nodeSelector={"disk": "ssd"})
    cluster.add_pod("too-large", cpu="3")
    file = str(cluster.kubeconfig())
    daemon = start_daemon(
        cluster, "--shadow", "--authentication-kubeconfig", file, "--authorization-kubeconfig", file, token=SECRET
    )
    daemon.wait_for_log("Watching, and binding nothing")
    before = cluster.call(lambda: cluster.api.store.revision)

    cluster.bind("agreed", "only")
    cluster.bind("objected", "other")
    cluster.bind("too-large", "only")
    judged = lambda: daemon.metric("kubesched_shadow_decisions_total") == 3  # noqa: E731
    wait_until(judged, "three judgements")
    for judgement in ("same", "rejected", "no-node"):
        assert daemon.metric("kubesched_shadow_decisions_total", judgement=judgement) == 1, judgement
    shown = json.loads(daemon.get("/debug/shadow").text)
    assert shown["counts"] == {"same": 1, "rejected": 1, "no-node": 1}
    (objected, too_large) = shown["differing"]
    assert (objected["pod"], objected["theirs"], objected["ours"]) == ("default/objected", "other", "only")
    assert objected["why"] == "NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    assert too_large["why"].startswith("NodeResourcesFit: Insufficient cpu")
    assert daemon.log_lines("Shadow differs", "default/objected")

    assert cluster.call(lambda: cluster.api.store.revision) == before + 3  # the bindings of the other, and nothing else
    assert cluster.lease() == {}
    assert daemon.stop() == 0


def test_what_a_shadow_found_outlives_it(
    start_cluster: StartCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    cluster, kept = start_cluster(tls=True, token=SECRET), tmp_path / "shadow.json"
    cluster.add_node("only", cpu="2")
    file = str(cluster.kubeconfig())
    flags = ("--authentication-kubeconfig", file, "--authorization-kubeconfig", file, "--shadow-file", str(kept))
    for number in (1, 2):
        daemon = start_daemon(cluster, "--shadow", *flags, token=SECRET)
        daemon.wait_for_log("Watching, and binding nothing")
        cluster.add_pod(f"pod-{number}")
        cluster.bind(f"pod-{number}", "only")
        wait_until(partial(daemon.metric, "kubesched_shadow_decisions_total"), "a judgement")
        assert daemon.stop() == 0
        ledger = json.loads(kept.read_text())
        assert sum(count for hour in ledger["hours"].values() for count in hour.values()) == number


def test_recording_of_a_live_run_replays_without_a_difference(
    cluster: LiveCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    recording = tmp_path / "recording.jsonl"
    cluster.add_nodes(3, cpu="1")
    daemon = start_daemon(cluster, "--record", str(recording))
    daemon.wait_scheduling()
    cluster.add_pods(20)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    cluster.delete(PODS, "default", "pod-7", grace=0)
    cluster.add_pod("large", cpu="900m", priorityClassName="high")
    wait_until(lambda: cluster.node_of("large"), "the pod bound after preemption")
    assert daemon.stop() == 0

    replayed = subprocess.run(
        [sys.executable, "-m", "kubesched", "replay", str(recording)], capture_output=True, text=True, timeout=60
    )
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "all the same" in replayed.stdout

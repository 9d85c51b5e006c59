"""An API server that misbehaves: in the end every pod is bound once, and the daemon believes what is true."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.integration.conftest import StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster, wait_until
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import NODES, PODS
from kubesched_sandbox.http import Rule
from kubesched_sandbox.http.faults import What

QUICK_BACKOFF = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}


def on_binding(what: What, **more: Any) -> Rule:
    """A fault that happens to bindings only."""
    return Rule(what, verb="create", resource="pods/binding", **more)


FAULTS = {
    "watches-dropped": [Rule("drop-watch", probability=0.2, count=20)],
    "history-gone-in-a-watch": [Rule("410", probability=0.2, verb="watch", count=20)],
    "history-gone-in-a-list": [Rule("410", verb="list", count=4), Rule("410", verb="watch", probability=0.1, count=9)],
    "events-told-twice": [Rule("duplicate", probability=0.5)],
    "events-out-of-order": [Rule("reorder", probability=0.3, count=30)],
    "conflicts-on-binding": [on_binding("409", count=5)],
    "too-many-requests": [on_binding("429", probability=0.5, count=10, retry_after=1)],
    "errors-before-the-binding": [on_binding("500-before", count=5)],
    "errors-after-the-binding": [on_binding("500-after", count=5)],
    "errors-everywhere": [Rule("500-before", probability=0.1, count=20), Rule("500-after", probability=0.1, count=20)],
    "slow-answers": [Rule("delay", probability=0.2, seconds=0.3)],
    "events-not-taken": [Rule("500-before", verb="create", resource="events")],
}


@pytest.mark.parametrize("rules", FAULTS.values(), ids=FAULTS.keys())
def test_all_pods_are_bound_once_and_cache_is_true(
    cluster: LiveCluster, start_daemon: StartDaemon, rules: list[Rule]
) -> None:
    cluster.add_nodes(4, cpu="2")
    daemon = _scheduling(cluster, start_daemon)
    cluster.misbehave(*rules)
    cluster.add_pods(30)
    cluster.patch(NODES, "", "node-0", {"metadata": {"labels": {"seen": "late"}}})
    cluster.delete(PODS, "default", "pod-3", grace=0)
    cluster.add_pod("pod-3")
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert sum(cluster.happened()) > 0
    assert set(cluster.bindings.values()) == {1}
    assert not cluster.overcommitted
    cluster.misbehave()
    _assert_cache_is_true(cluster, daemon)
    assert daemon.stop() == 0


def test_binding_that_is_never_answered_holds_up_nobody_and_is_made_again_when_its_connection_is_lost(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(2)
    daemon = _scheduling(cluster, start_daemon)
    cluster.misbehave(on_binding("freeze", count=1))
    cluster.add_pods(10)
    wait_until(lambda: cluster.bound == 9, "all pods but one bound")
    cluster.start(cluster.stop())
    wait_until(lambda: cluster.all_bound, "the last pod bound")
    assert set(cluster.bindings.values()) == {1}
    _assert_cache_is_true(cluster, daemon)


def test_server_that_refuses_for_a_while_is_asked_again_after_the_time_it_named(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(1)
    daemon = _scheduling(cluster, start_daemon)
    cluster.misbehave(on_binding("429", count=1, retry_after=1))
    cluster.add_pod("pod")
    wait_until(lambda: cluster.all_bound, "the pod bound")
    assert not cluster.condition("pod").get("reason")  # the attempt did not even fail
    assert not daemon.log_lines("Error scheduling pod")


def test_pod_bound_by_another_meanwhile_is_not_bound_again(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(2)
    daemon = _scheduling(cluster, start_daemon)
    cluster.misbehave(on_binding("delay", count=1, seconds=0.5))
    cluster.add_pod("pod")
    wait_until(lambda: cluster.happened() == [1], "the binding on its way")
    cluster.bind("pod", "node-1")
    cluster.misbehave()
    cluster.add_pod("next")
    wait_until(lambda: cluster.node_of("next"), "the next pod bound")
    assert cluster.node_of("pod") == "node-1"
    assert set(cluster.bindings.values()) == {1}
    _assert_cache_is_true(cluster, daemon)


def test_server_that_comes_back_with_its_history_gone_is_listed_again(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(2)
    daemon = _scheduling(cluster, start_daemon)
    api = cluster.stop()
    api.create(
        PODS, "default", {"metadata": {"name": "meanwhile"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    api.store.compact()
    cluster.start(api)
    wait_until(lambda: cluster.node_of("meanwhile"), "the pod bound that came while it was away")
    _assert_cache_is_true(cluster, daemon)
    assert daemon.stop() == 0


def test_server_that_comes_back_empty_handed_is_believed(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    """Another cluster at the same address, whose versions begin anew."""
    cluster.add_nodes(3)
    cluster.add_pods(20)
    daemon = _scheduling(cluster, start_daemon)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    cluster.stop()
    cluster.start(fresh_api(seed=2))
    cluster.add_node("new-node", labels={"cluster": "new"})
    cluster.add_pod("new-pod", nodeSelector={"cluster": "new"})
    wait_until(lambda: cluster.node_of("new-pod") == "new-node", "the pod of the new cluster bound")
    _assert_cache_is_true(cluster, daemon)


def test_server_that_is_away_for_a_while_finds_the_daemon_at_work_again(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(2)
    daemon = _scheduling(cluster, start_daemon)
    api = cluster.stop()
    daemon.wait_for_log("connection refused")
    cluster.start(api)
    cluster.add_pods(5)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert daemon.stop() == 0


def test_watch_that_falls_silent_is_found_out_by_a_comparison(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(1)
    daemon = _scheduling(cluster, start_daemon)
    cluster.misbehave(Rule("freeze", verb="watch", resource="pods", count=1))
    cluster.add_pod("unheard")
    wait_until(lambda: cluster.happened() == [1], "the watch frozen")
    cluster.misbehave()
    daemon.send(signal.SIGUSR2)
    wait_until(lambda: cluster.node_of("unheard"), "the pod bound")
    _assert_cache_is_true(cluster, daemon)


def test_watch_that_falls_silent_is_found_out_by_a_binding(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = _scheduling(cluster, start_daemon)
    cluster.add_pod("gone")
    wait_until(lambda: cluster.condition("gone"), "the pod seen")
    cluster.misbehave(Rule("freeze", verb="watch", resource="pods", count=1))
    cluster.delete(PODS, "default", "gone", grace=0)
    cluster.add_pod("unheard")
    wait_until(lambda: cluster.happened() == [1], "the watch frozen")
    cluster.misbehave()
    cluster.add_nodes(1)  # now the pod that is gone is tried
    wait_until(lambda: cluster.node_of("unheard"), "the pod bound")
    assert daemon.log_lines("The watch has not shown")
    daemon.wait_for_log("Compared the cache with the API server")  # by itself
    _assert_cache_is_true(cluster, daemon)


def test_node_that_is_gone_before_its_pods_is_not_bound_to(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("first", cpu="1")
    daemon = _scheduling(cluster, start_daemon)
    cluster.add_pod("old", cpu="800m")
    wait_until(lambda: cluster.node_of("old"), "the pod bound")
    cluster.delete(NODES, "", "first")
    cluster.add_pod("new", cpu="800m")
    wait_until(lambda: "no nodes available" in cluster.condition("new").get("message", ""), "no node left")
    cluster.add_node("first", cpu="1")  # another node of that name, with the pod of the old one still on it
    wait_until(lambda: "Insufficient cpu" in cluster.condition("new").get("message", ""), "no room left")
    cluster.delete(PODS, "default", "old", grace=0)
    wait_until(lambda: cluster.node_of("new") == "first", "the pod bound")
    _assert_cache_is_true(cluster, daemon)


def _scheduling(cluster: LiveCluster, start_daemon: StartDaemon) -> Daemon:
    """A daemon that has the lease for long enough, and pods back soon."""
    daemon = start_daemon(cluster, config=QUICK_BACKOFF)
    daemon.wait_scheduling()
    return daemon


def _assert_cache_is_true(cluster: LiveCluster, daemon: Daemon) -> None:
    before = len(daemon.log_lines("Compared the cache with the API server"))
    daemon.send(signal.SIGUSR2)
    compared = lambda: daemon.log_lines("Compared the cache with the API server")[before:]  # noqa: E731
    (line,) = wait_until(compared, "a comparison")
    assert line.endswith("differences=0"), daemon.log

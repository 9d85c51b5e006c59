"""What befalls a real API server: it is killed, forgets the past, is asked too much."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections import Counter

from bench.peer.client import fetch
from tests.control_plane.conftest import StartKubesched
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS

NODES, PODS_OF_A_NODE = 10, 20


def bound(cluster: RealCluster) -> Counter[str]:
    """Pods by node."""
    return Counter(pod["spec"]["nodeName"] for pod in cluster.list(PODS) if pod["spec"].get("nodeName"))


def test_bindings_go_on_after_the_api_server_was_killed_and_none_is_lost_or_counted_twice(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    for number in range(NODES):
        cluster.add_node(f"node-{number}", cpu="2")
    half = NODES * PODS_OF_A_NODE // 2
    for number in range(half):
        cluster.add_pod(f"early-{number}")
    daemon = start_kubesched()
    wait_until(lambda: bound(cluster), "the first bindings")
    cluster.plane.api_server.process.kill()
    cluster.plane.api_server.process.wait()
    cluster.plane.start_api_server_again()
    cluster.wait_all_bound()

    # Every node can be filled to the last millicore: nothing is assumed to be there that is not.
    for number in range(half):
        cluster.add_pod(f"late-{number}")
    cluster.wait_all_bound()
    assert bound(cluster) == {f"node-{number}": PODS_OF_A_NODE for number in range(NODES)}
    assert daemon.stop() == 0


def test_daemon_that_slept_through_a_compaction_reads_anew(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    """What it watched last is no longer there to go on from: the API server answers 410."""
    cluster.add_node("node-0")
    daemon = start_kubesched()
    cluster.add_pod("before")
    cluster.wait_bound("before")
    daemon.send(signal.SIGSTOP)
    cluster.plane.api_server.process.kill()
    cluster.plane.api_server.process.wait()
    cluster.plane.start_api_server_again()
    cluster.delete(PODS, "before")
    for number in range(20):
        cluster.add_pod(f"after-{number}")
    cluster.plane.compact()
    # Its memory of earlier versions goes with it: now nobody has them.
    cluster.plane.api_server.process.kill()
    cluster.plane.api_server.process.wait()
    cluster.plane.start_api_server_again()
    daemon.send(signal.SIGCONT)
    assert set(cluster.wait_all_bound()) == {f"after-{number}" for number in range(20)}
    assert daemon.log_lines("watch closed, listing again", "too old resource version")
    assert daemon.stop() == 0


def test_crowd_of_other_clients_does_not_keep_pods_from_being_bound(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    """kube-scheduler's user has a priority level of its own, and so has kubesched with the same user."""
    for number in range(5):
        cluster.add_node(f"node-{number}", cpu="8")
    start_kubesched()
    done = threading.Event()

    def ask_again_and_again() -> None:
        while not done.is_set():
            with contextlib.suppress(OSError):
                fetch(cluster.plane.access, "/api/v1/pods?limit=500", timeout=30)

    crowd = [threading.Thread(target=ask_again_and_again) for _ in range(30)]
    for client in crowd:
        client.start()
    try:
        for number in range(100):
            cluster.add_pod(f"pod-{number}")
        assert len(cluster.wait_all_bound()) == 100
    finally:
        done.set()
        for client in crowd:
            client.join()

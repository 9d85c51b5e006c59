from __future__ import annotations

from tests.builders import make_cluster, make_engine

from kubesched.testing import make_pod


def test_a_gated_pod_waits_and_says_for_what() -> None:
    status = make_engine(make_cluster()).pre_enqueue(make_pod("p").gate("quota").gate("review").build())
    assert status is not None
    assert (status.plugin, status.message) == ("SchedulingGates", "waiting for scheduling gates: [quota review]")


def test_a_pod_without_gates_is_looked_at_at_once() -> None:
    assert make_engine(make_cluster()).pre_enqueue(make_pod("p").build()) is None

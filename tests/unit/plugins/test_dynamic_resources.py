from __future__ import annotations

from tests.builders import make_cluster, make_engine

from kubesched.testing import make_node, make_pod


def test_pods_without_claims_still_read_its_words_when_nothing_fits() -> None:
    decision = make_engine(make_cluster(make_node("n1"))).decide(make_pod("p").requests(cpu="9").build())
    assert "no new claims to deallocate, preemption: 0/1 nodes are available" in decision.message

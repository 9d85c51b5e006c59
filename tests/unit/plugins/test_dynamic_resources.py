from __future__ import annotations

from tests.builders import make_cluster, make_engine, make_node, make_pod

from kubesched.api.pod import PodResourceClaim


def test_pods_with_resource_claims_are_refused_in_plain_words() -> None:
    claim = PodResourceClaim(name="gpu", resource_claim_name="gpu")
    decision = make_engine(make_cluster(make_node("n1"))).decide(make_pod("p").spec(resource_claims=(claim,)).build())
    assert not decision.node
    assert "pod uses resource claims, which this version of kubesched does not allocate" in decision.message


def test_pods_without_claims_still_read_its_words_when_nothing_fits() -> None:
    decision = make_engine(make_cluster(make_node("n1"))).decide(make_pod("p").requests(cpu="9").build())
    assert "no new claims to deallocate, preemption: 0/1 nodes are available" in decision.message

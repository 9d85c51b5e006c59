"""Shadow mode on the page: agreement, differences by cause, and both sides of each."""

from __future__ import annotations

from tests.unit.daemon.test_shadow import Watched

from kubesched.testing import make_node, make_pod
from kubesched.ui.model.shadow import ShadowModel, ShadowView

SSD = make_node("ssd").label({"disk": "ssd"}).capacity(cpu="4")
HDD = make_node("hdd").label({"disk": "hdd"}).capacity(cpu="4")
LOAD = make_pod("load").requests(cpu="3", memory="3Gi").on("hdd")


def judged() -> ShadowView:
    """One that agrees, two that are rejected here, one that scores lower here, and one that fits nowhere."""
    picky = [make_pod(f"picky-{i}").requests(cpu="100m").node_selector(disk="ssd") for i in range(3)]
    free, large = make_pod("free").requests(cpu="500m"), make_pod("large").requests(cpu="9")
    watched = Watched(SSD, HDD, LOAD, *picky, free, large)
    for pod, node in ((picky[0], "ssd"), (picky[1], "hdd"), (picky[2], "hdd"), (free, "hdd"), (large, "ssd")):
        watched.see_bound(pod, node)
    return ShadowModel(watched.shadow).view()


def test_agreement_is_counted_by_judgement_and_over_time() -> None:
    view = judged()
    assert (view.pods, view.agreeing) == (5, 1)
    assert dict(view.judgements) == {"same": 1, "tie": 0, "lower": 1, "rejected": 2, "no-node": 1, "error": 0}
    assert [point[1:] for point in view.over_time] == [(1, 4)]


def test_differences_of_the_same_cause_are_together_and_the_most_come_first() -> None:
    causes = judged().causes
    assert [(cause.judgement, cause.pods) for cause in causes] == [("rejected", 2), ("lower", 1), ("no-node", 1)]
    assert causes[0].title == "NodeAffinity: node(s) didn't match Pod's node affinity/selector"
    assert causes[0].examples == ("default/picky-2", "default/picky-1")
    assert causes[1].title.endswith(" prefers another node")


def test_both_sides_say_how_their_node_stands_here() -> None:
    found = {each.comparison.pod: each.comparison for each in judged().differences}
    picky, free, large = found["default/picky-1"], found["default/free"], found["default/large"]
    assert picky.their_node is not None
    assert (picky.their_node.node, picky.their_node.rejection[:12]) == ("hdd", "NodeAffinity")
    assert picky.our_node is not None
    assert (picky.our_node.node, picky.our_node.rejection, picky.fitting, picky.nodes) == ("ssd", "", 1, 2)
    assert free.our_node is not None
    assert free.our_node.total is not None
    assert free.their_node is not None
    assert free.their_node.total is not None
    assert free.our_node.total > free.their_node.total
    assert sum(value for _, value in free.our_node.parts) == free.our_node.total
    assert large.our_node is None
    assert "Insufficient cpu" in large.message


def test_pods_of_one_cause_can_be_asked_for() -> None:
    picky = make_pod("picky").requests(cpu="100m").node_selector(disk="ssd")
    large = make_pod("large").requests(cpu="9")
    watched = Watched(SSD, HDD, picky, large)
    watched.see_bound(picky, "hdd")
    watched.see_bound(large, "ssd")
    model = ShadowModel(watched.shadow)
    wanted = next(cause for cause in model.view().causes if cause.judgement == "no-node")
    assert [each.comparison.pod for each in model.view(wanted.id).differences] == ["default/large"]

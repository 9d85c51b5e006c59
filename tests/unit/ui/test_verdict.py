from __future__ import annotations

import pytest
from tests.unit.ui.observing import alive, still

from kubesched import config
from kubesched.api.pod import PersistentVolumeClaimSource, Volume
from kubesched.ask.explain.explanation import explain_pod
from kubesched.ask.targets import RequestError
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.pods import PodVerdict
from kubesched.ui.views import PageViews


def verdict(views: PageViews, key: str) -> PodVerdict:
    view = views.pods.view(key)
    assert view is not None
    assert view.verdict is not None
    return view.verdict


def test_funnel_says_which_plugin_left_how_many_nodes() -> None:
    views = still(
        make_node("a").taint("dedicated"),
        make_node("b").capacity(cpu="1"),
        make_node("c").capacity(cpu="8"),
        make_pod("p").requests(cpu="2"),
    )
    found = verdict(views, "default/p")
    assert [(step.plugin, step.came, step.passed) for step in found.funnel] == [
        ("TaintToleration", 3, 2),
        ("NodeResourcesFit", 2, 1),
    ]
    assert found.funnel[1].reasons[0].examples == ("b",)
    assert (found.outcome, found.node, found.fitting, found.nodes) == ("scheduled", "c", 1, 3)


def test_pod_that_is_refused_before_any_node_has_a_funnel_of_one_step() -> None:
    pod = make_pod("p").spec(volumes=(_claimed("nothing"),))
    found = verdict(still(make_node("a"), make_node("b"), pod), "default/p")
    assert [(step.came, step.passed) for step in found.funnel] == [(2, 0)]
    assert "nothing" in found.message


def _claimed(name: str) -> Volume:
    return Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=name))


def test_nearest_misses_are_those_with_fewest_objections_and_least_missing() -> None:
    views = still(
        make_node("far").capacity(cpu="1"),
        make_node("near").capacity(cpu="1900m"),
        make_node("tainted").capacity(cpu="1900m").taint("dedicated"),
        make_pod("p").requests(cpu="2"),
    )
    misses = verdict(views, "default/p").misses
    assert [(miss.node, miss.text) for miss in misses] == [
        ("near", "lacks 100m cpu"),
        ("far", "lacks 1 cpu"),
        ("tainted", "has the taint dedicated:NoSchedule; lacks 100m cpu"),
    ]
    assert misses[2].plugins == ("TaintToleration", "NodeResourcesFit")


def test_scores_and_lead_are_those_of_the_explanation() -> None:
    objects = (
        make_node("a").capacity(cpu="4").build(),
        make_node("b").capacity(cpu="16").build(),
        make_pod("p").requests(cpu="2").build(),
    )
    cluster = ClusterModel(objects, config.default())
    explained = explain_pod(cluster, cluster.pods["default/p"])
    ranking = verdict(still(*objects), "default/p").ranking
    assert ranking is not None
    shown = [
        (node.node, node.total, dict(zip((name for name, _ in ranking.plugins), node.parts))) for node in ranking.nodes
    ]
    assert shown == [(s.node, s.total, {part.plugin: part.weighted for part in s.parts}) for s in explained.scores]
    lead = verdict(still(*objects), "default/p").lead
    assert lead is not None
    assert (lead.over, lead.points) == ("a", explained.scores[0].total - explained.scores[1].total)
    assert sum(points for _, points in lead.parts) == lead.points


def test_preemption_names_its_victims() -> None:
    views = still(
        make_node("a").capacity(cpu="2"),
        make_pod("low").requests(cpu="2").priority(1).on("a"),
        make_pod("high").requests(cpu="2").priority(10),
    )
    eviction = verdict(views, "default/high").eviction
    assert eviction is not None
    assert (eviction.node, [victim.pod for victim in eviction.victims]) == ("a", ["default/low"])


def test_pod_that_is_held_back_says_by_what_and_what_would_be_without() -> None:
    found = verdict(still(make_node("a"), make_pod("p").gate("example.com/wait")), "default/p")
    assert (found.outcome, found.node) == ("gated", "a")
    assert found.gate is not None
    assert found.gate.startswith("SchedulingGates")


def test_looking_at_a_pod_that_runs_asks_for_one_more_and_leaves_it_where_it_is() -> None:
    views = still(make_node("a").capacity(cpu="2"), make_pod("p").requests(cpu="2").on("a"))
    nodes = views.observed.state.nodes
    version = nodes.changes.position
    assert verdict(views, "default/p").fitting == 0
    assert int(nodes.pod_count[0]) == 1
    assert nodes.changes.position == version


def test_looking_draws_nothing_from_the_schedulers_own_random_numbers() -> None:
    world, views = alive(make_node("a"), make_node("b"), make_pod("p"))
    drawn: list[int] = []
    world.scheduler.engine.draw = lambda among: drawn.append(among) or 0  # type: ignore[func-returns-value]
    assert verdict(views, "default/p").ranking is not None
    assert drawn == []


# -- try it -------------------------------------------------------------------------------------------------------

EDITED = """
metadata: {name: p}
spec:
  containers: [{name: main, image: x, resources: {requests: {cpu: %s}}}]
"""


def test_edited_pod_gets_its_own_verdict_and_the_cluster_does_not_change() -> None:
    views = still(make_node("a").capacity(cpu="2"), make_pod("p").requests(cpu="3"))
    before = views.map.version
    small = views.pods.try_it(EDITED % "1", "default/p")
    large = views.pods.try_it(EDITED % "3", "default/p")
    assert small is not None
    assert large is not None
    assert (small.node, large.node) == ("a", "")
    assert views.map.version == before
    assert views.observed.pods["default/p"].spec.containers[0].resources.requests == {"cpu": "3"}


def test_all_mistakes_of_an_edited_pod_are_named() -> None:
    views = still(make_node("a"), make_pod("p"))
    with pytest.raises(RequestError) as raised:
        views.pods.try_it("spec:\n  containers: [{name: 'A B', image: x}]\n  nodeSelectr: {}", "default/p")
    assert any("nodeSelectr" in line for line in raised.value.lines)
    assert any("name" in line for line in raised.value.lines)


@pytest.mark.parametrize("text", ["{", "- a list", "", "kind: Node\napiVersion: v1", "metadata: 3", "a: &a [*a]"])
def test_what_is_no_pod_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        still(make_node("a")).pods.try_it(text, "")


def test_what_can_be_edited_can_be_tried_as_it_is() -> None:
    pod = make_pod("p").requests(cpu="3").label(app="web").toleration("dedicated").node_selector(disk="ssd")
    views = still(make_node("a").capacity(cpu="2"), pod)
    view = views.pods.view("default/p")
    assert view is not None
    assert views.pods.try_it(view.yaml, "default/p") == view.verdict

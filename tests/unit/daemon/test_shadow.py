"""Shadow mode: what is said about the decisions of another scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.unit.extenders.extender_server import ExtenderServer, filtering, passing, settings
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.daemon.shadow import Shadow, ShadowComparison
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.framework.extender import Extender
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


class Watched:
    """A cluster that another scheduler rules, and a shadow that watches."""

    def __init__(self, *objects: NodeBuilder | PodBuilder, extenders: Sequence[Extender] = ()) -> None:
        self.cluster = MemoryCluster()
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0),
            config.default(),
            self.cluster,
            in_tree(),
            extenders=extenders,
        )
        self.told: list[ShadowComparison] = []
        self.shadow = Shadow(self.scheduler.engine, clock=lambda: 7.0, on_comparison=self.told.append)
        self.scheduler.listeners.append(self.shadow)
        for obj in objects:
            self.scheduler.handle(Change(new=obj.build()))

    def see_bound(self, pod: PodBuilder, node: str) -> ShadowComparison:
        self.scheduler.handle(Change(pod.build(), pod.on(node).build()))
        return self.told[-1]


EMPTY, FULL = make_node("empty").capacity(cpu="4"), make_node("full").capacity(cpu="4")
LOAD = make_pod("load").requests(cpu="3").on("full")


def test_extenders_are_asked_about_the_pod_as_if_it_were_on_no_node_yet() -> None:
    server = ExtenderServer()
    server.answers["filter"] = passing("full")
    server.start()

    async def story() -> ShadowComparison:
        extenders = extenders_of(settings(filtering(server)))
        pod = make_pod("p").requests(cpu="1")
        watched = Watched(EMPTY, FULL, LOAD, pod, extenders=extenders)
        watched.scheduler.handle(Change(pod.build(), pod.on("full").build()))
        async with asyncio.timeout(30):
            while not watched.told:
                await asyncio.sleep(0.01)
        await close_all(extenders)
        assert watched.scheduler.state.placed(pod.build()) is not None
        return watched.told[0]

    try:
        comparison = asyncio.run(story())
    finally:
        server.stop()
    assert (comparison.judgement, comparison.ours) == ("same", "full")
    assert server.asked[0][1]["NodeNames"] == ["empty", "full"]


def test_same_node_is_agreement() -> None:
    pod = make_pod("p").requests(cpu="1")
    watched = Watched(EMPTY, FULL, LOAD, pod)
    comparison = watched.see_bound(pod, "empty")
    assert (comparison.judgement, comparison.agrees, comparison.at) == ("same", True, 7.0)
    assert not watched.shadow.differing


def test_another_of_equally_good_nodes_is_agreement_too() -> None:
    pod = make_pod("p").requests(cpu="1")
    watched = Watched(make_node("a"), make_node("b"), pod)
    comparison = watched.see_bound(pod, "b" if watched.scheduler.engine.decide(pod.build()).node == "a" else "a")
    assert (comparison.judgement, comparison.agrees) == ("tie", True)


def test_node_that_scores_lower_is_told_with_the_plugins_that_make_the_difference() -> None:
    pod = make_pod("p").requests(cpu="1")
    comparison = Watched(EMPTY, FULL, LOAD, pod).see_bound(pod, "full")
    assert (comparison.judgement, comparison.ours) == ("lower", "empty")
    assert "NodeResourcesFit +" in comparison.why


def test_node_that_is_rejected_here_is_told_with_the_reason() -> None:
    pod = make_pod("p").requests(cpu="2")
    comparison = Watched(EMPTY, FULL, LOAD, pod).see_bound(pod, "full")
    assert (comparison.judgement, comparison.why) == ("rejected", "NodeResourcesFit: Insufficient cpu")


def test_pod_that_fits_nowhere_here_is_told() -> None:
    pod = make_pod("p").requests(cpu="2")
    watched = Watched(FULL, LOAD, pod)
    assert watched.see_bound(pod, "full").judgement == "no-node"
    assert watched.shadow.to_plain()["counts"] == {"no-node": 1}
    assert watched.shadow.to_plain()["differing"][0]["pod"] == "default/p"


def test_node_that_is_not_known_here_is_told() -> None:
    pod = make_pod("p")
    comparison = Watched(EMPTY, pod).see_bound(pod, "elsewhere")
    assert (comparison.judgement, comparison.why) == ("rejected", "the node is not known here")


def test_pods_of_schedulers_without_a_profile_are_only_load() -> None:
    pod = make_pod("p").requests(cpu="4").spec(scheduler_name="other")
    watched = Watched(EMPTY, pod)
    watched.scheduler.handle(Change(pod.build(), pod.on("empty").build()))
    assert watched.told == []
    assert watched.see_bound(make_pod("q").requests(cpu="1"), "empty").judgement == "no-node"


def test_nothing_is_written() -> None:
    pod = make_pod("p").requests(cpu="9")
    watched = Watched(EMPTY, pod)
    watched.see_bound(pod, "empty")
    assert (watched.cluster.bindings, watched.cluster.notes) == ([], [])

"""Shadow mode and pod groups: pods of a group are judged in the light of the group."""

from __future__ import annotations

from tests.unit.scheduler.group_world import ALL_GATES, make_gang, members
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.shadow import ShadowComparison, shadow_of
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

RACK = "example.com/rack"


class Watched:
    """A cluster that another scheduler rules, and a shadow that watches."""

    def __init__(self, *objects: NodeBuilder | PodBuilder | KubeObject) -> None:
        settings = config.default(ALL_GATES)
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0), settings, MemoryCluster(), in_tree()
        )
        self.told: list[ShadowComparison] = []
        self.scheduler.listeners.append(shadow_of(self.scheduler, clock=lambda: 7.0, on_comparison=self.told.append))
        for obj in objects:
            self.scheduler.handle(Change(new=obj if isinstance(obj, KubeObject) else obj.build()))

    def see_bound(self, pods: list[PodBuilder], *nodes: str) -> list[tuple[str, str]]:
        """What is said of each, in this order: the judgement, and why."""
        for pod, node in zip(pods, nodes, strict=True):
            self.scheduler.handle(Change(pod.build(), pod.on(node).build()))
        return [(each.judgement, each.why) for each in self.told]


def racked(rack: str, count: int, cpu: str = "1") -> list[NodeBuilder]:
    return [make_node(f"{rack}{i}").capacity(cpu=cpu).label({RACK: rack}) for i in range(count)]


def test_gang_that_runs_here_too_is_the_same_or_a_tie() -> None:
    pods = members("g", 3)
    watched = Watched(*racked("a", 3), make_gang("g", 3), *pods)
    said = watched.see_bound(pods, "a2", "a0", "a1")
    assert {judgement for judgement, _ in said} <= {"same", "tie"}


def test_no_pod_of_a_gang_that_does_not_fit_here_would_have_been_bound() -> None:
    pods = members("g", 4)
    watched = Watched(*racked("a", 3), make_gang("g", 4), *pods)
    said = watched.see_bound(pods[:3], "a0", "a1", "a2")
    assert [judgement for judgement, _ in said] == ["no-node"] * 3
    assert all("pod group default/g" in why and "minCount (4)" in why for _, why in said)


def test_gang_without_enough_pods_would_not_have_been_bound() -> None:
    pods = members("g", 2)
    watched = Watched(*racked("a", 3), make_gang("g", 3), *pods)
    [(judgement, why), _] = watched.see_bound(pods, "a0", "a1")
    assert (judgement, "minCount (3)" in why) == ("no-node", True)


def test_gang_in_another_rack_is_told_once_and_its_pods_are_judged_within_that_rack() -> None:
    pods = members("g", 2)
    load = make_pod("load").requests(cpu="1").on("b0")
    # b is fuller with the group in it, so that is where it goes here.
    watched = Watched(*racked("a", 2, cpu="4"), *racked("b", 1, cpu="4"), load, make_gang("g", 2, topology=RACK), *pods)
    said = watched.see_bound(pods, "a0", "a1")
    assert said == [("lower", "pod group default/g goes to b here, not to a"), ("same", "")]
    assert watched.told[0].ours == "b0"


def test_gang_in_a_rack_where_it_does_not_fit_is_rejected() -> None:
    pods = members("g", 2)
    watched = Watched(*racked("a", 1), *racked("b", 2), make_gang("g", 2, topology=RACK), *pods)
    [(judgement, why)] = watched.see_bound(pods[:1], "a0")
    assert (judgement, "pod group default/g in a: " in why) == ("rejected", True)


def test_racks_that_are_alike_are_a_tie() -> None:
    pods = members("g", 2)
    watched = Watched(*racked("a", 2), *racked("b", 2), make_gang("g", 2, topology=RACK), *pods)
    said = watched.see_bound(pods, "b1", "b0")
    assert {judgement for judgement, _ in said} <= {"same", "tie"}


def test_group_that_is_made_anew_is_judged_anew() -> None:
    pods, gang = members("g", 3), make_gang("g", 3)
    watched = Watched(*racked("a", 2), gang, *pods)
    watched.see_bound(pods[:1], "a0")
    watched.scheduler.handle(Change(gang, None))
    watched.scheduler.handle(Change(None, make_gang("g", 2, uid="another")))
    watched.see_bound(pods[1:2], "a1")
    assert [each.judgement for each in watched.told] == ["no-node", "same"]


def test_nothing_of_it_stays_in_the_cache() -> None:
    pods = members("g", 4)
    watched = Watched(*racked("a", 3), make_gang("g", 4), *pods)
    watched.see_bound(pods[:1], "a0")
    groups = watched.scheduler.state.groups
    assert (len(groups.pending("default/g")), len(groups.placed("default/g"))) == (3, 1)

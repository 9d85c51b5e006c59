"""Groups that make room for themselves, and groups that have to give way."""

from __future__ import annotations

from typing import Any

from tests.group_scenarios.gangs import SPREAD_OVER_NODES
from tests.group_scenarios.stage import RACK, ZONE, Scenario, Stage


def _filled(stage: Stage, *priorities: int, cpu: str = "1") -> None:
    """Pods v-0, v-1, ... of these priorities, each on the node of its number."""
    stage.nodes(len(priorities), cpu=cpu)
    for i, priority in enumerate(priorities):
        stage.pod(f"v-{i}", cpu=cpu, node=f"n{i}", priority=priority)


def _preemptor(stage: Stage, min_count: int | None, count: int, *, priority: int = 100, **spec: Any) -> None:
    stage.members("g", count, priority=priority, **spec)
    stage.group("g", min_count, priority=priority)


def _victim_group(
    stage: Stage, count: int, *, name: str = "low", priority: int = 50, min_count: int | None = 1
) -> None:
    """A group that is disrupted as one, with a pod on each of the first nodes."""
    stage.group(name, min_count, priority=priority, as_one=True)
    for i in range(count):
        stage.members(name, 1, first=i, node=f"n{i}", priority=priority)


def gang_preempts_all_it_needs(stage: Stage) -> None:
    _filled(stage, 1, 1, 1)
    _preemptor(stage, 3, 3)
    stage.settles(g=3, v=0)


def basic_group_preempts_all_it_needs(stage: Stage) -> None:
    _filled(stage, 1, 1, 1)
    _preemptor(stage, None, 3)
    stage.settles(g=3, v=0)


def gang_preempts_no_more_than_it_needs(stage: Stage) -> None:
    _filled(stage, 1, 2, 3)
    stage.nodes(1, first=3)
    _preemptor(stage, 3, 3)
    stage.settles(g=3, v=1)
    assert set(stage.where("v")) == {"v-2"}, "the most important stays"


def basic_group_preempts_no_more_than_it_needs(stage: Stage) -> None:
    _filled(stage, 1, 2, 3)
    _preemptor(stage, None, 2)
    stage.settles(g=2, v=1)
    assert set(stage.where("v")) == {"v-2"}


def pods_under_a_budget_are_spared_if_others_will_do(stage: Stage) -> None:
    stage.nodes(3)
    stage.budget("guarded", 0)
    stage.pod("guarded-0", node="n0", priority=1)
    stage.pod("v-1", node="n1", priority=1)
    stage.pod("v-2", node="n2", priority=1)
    _preemptor(stage, 2, 2)
    stage.settles(g=2, v=0, guarded=1)


def gang_preempts_on_several_nodes(stage: Stage) -> None:
    stage.nodes(2, cpu="2")
    for i in range(4):
        stage.pod(f"v-{i}", node=f"n{i // 2}", priority=1)
    _preemptor(stage, 2, 2, cpu="2")
    stage.settles(g=2, v=0)


def nobody_is_preempted_in_vain(stage: Stage) -> None:
    _filled(stage, 1, 1)
    _preemptor(stage, 3, 3)
    stage.waits("g-0", g=0, v=2)


def the_least_important_are_preempted(stage: Stage) -> None:
    _filled(stage, 10, 90, 20)
    _preemptor(stage, 2, 2)
    stage.settles(g=2, v=1)
    assert set(stage.where("v")) == {"v-1"}


def group_that_is_disrupted_as_one_goes_as_a_whole(stage: Stage) -> None:
    stage.nodes(3)
    _victim_group(stage, 3)
    _preemptor(stage, 1, 1)
    stage.settles(g=1, low=0)


def basic_group_that_is_disrupted_as_one_goes_as_a_whole(stage: Stage) -> None:
    stage.nodes(3)
    _victim_group(stage, 3, min_count=None)
    _preemptor(stage, 1, 1)
    stage.settles(g=1, low=0)


def group_of_higher_priority_is_not_preempted(stage: Stage) -> None:
    stage.nodes(2)
    _victim_group(stage, 2, priority=500)
    _preemptor(stage, 1, 1)
    stage.waits("g-0", g=0, low=2)


def gang_takes_what_it_can_get_beyond_its_quorum(stage: Stage) -> None:
    _filled(stage, 10, 10, 200, 200)
    _preemptor(stage, 1, 3)
    stage.settles(g=2, v=2)
    stage.waits("g-2", g=2, v=2)


def basic_group_takes_what_it_can_get(stage: Stage) -> None:
    _filled(stage, 10, 10, 200, 200)
    _preemptor(stage, None, 3)
    stage.settles(g=2, v=2)


def _with_a_lesser_group(stage: Stage, min_count: int | None) -> None:
    stage.nodes(3)
    _victim_group(stage, 2)
    stage.pod("v-2", node="n2", priority=10)
    _preemptor(stage, min_count, 3)
    stage.settles(g=3, low=0, v=0)


def lesser_group_is_not_spared_by_a_gang(stage: Stage) -> None:
    _with_a_lesser_group(stage, 3)


def lesser_group_is_not_spared_by_a_basic_group(stage: Stage) -> None:
    _with_a_lesser_group(stage, None)


def _among_groups(stage: Stage, min_count: int | None) -> None:
    stage.nodes(4)
    _victim_group(stage, 2)
    stage.group("high", 2, priority=200, as_one=True)
    for i in range(2):
        stage.members("high", 1, first=i, node=f"n{i + 2}", priority=200)
    _preemptor(stage, min_count, 3)
    stage.settles(g=2, low=0, high=2)


def gang_runs_in_part_where_a_whole_group_gave_way(stage: Stage) -> None:
    _among_groups(stage, 1)


def basic_group_runs_in_part_where_a_whole_group_gave_way(stage: Stage) -> None:
    _among_groups(stage, None)


def gang_whose_pods_never_preempt_waits(stage: Stage) -> None:
    _filled(stage, 1, 1)
    _preemptor(stage, 2, 2, preemptionPolicy="Never")
    stage.waits("g-0", g=0, v=2)


def gang_preempts_for_node_resources_and_spares_the_more_important(stage: Stage) -> None:
    stage.nodes(1, cpu="4")
    for i, priority in enumerate((10, 20, 30, 40)):
        stage.pod(f"v-{i}", node="n0", priority=priority)
    _preemptor(stage, 2, 2)
    stage.settles(g=2, v=2)
    assert set(stage.where("v")) == {"v-2", "v-3"}


def gang_preempts_for_resources_of_whole_pods(stage: Stage) -> None:
    stage.nodes(2, cpu="2")
    for i in range(2):
        stage.pod(f"v-{i}", cpu="2", node=f"n{i}", priority=1)
    _preemptor(stage, 2, 2, cpu="100m", resources={"requests": {"cpu": "2"}})
    stage.settles(g=2, v=0)


def gang_preempts_for_its_anti_affinity(stage: Stage) -> None:
    stage.nodes(2, cpu="8")
    stage.pod("g-8", node="n0", priority=1)
    _preemptor(stage, 2, 2, affinity=SPREAD_OVER_NODES)
    stage.expect(lambda: set(stage.where("g")) == {"g-0", "g-1"}, "both, and not the one in the way")


def gang_preempts_for_its_ports(stage: Stage) -> None:
    stage.nodes(2, cpu="8")
    stage.pod("v-0", node="n0", priority=1, hostPort=80)
    _preemptor(stage, 2, 2, hostPort=80)
    stage.settles(g=2, v=0)


def gang_preempts_for_its_spread(stage: Stage) -> None:
    stage.nodes(1, prefix="a", cpu="8", zone="a")
    stage.nodes(1, prefix="b", cpu="2", zone="b")
    stage.pod("v-0", cpu="2", node="b0", priority=1)
    selector = {"matchLabels": {"app": "g"}}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    _preemptor(stage, 4, 4, topologySpreadConstraints=[spread])
    stage.settles(g=4, v=0)
    assert sorted(stage.where("g").values()) == ["a0", "a0", "b0", "b0"]


def _bind_first(stage: Stage, min_count: int | None) -> None:
    """Those that fit are bound; only the pod that is left over preempts."""
    stage.nodes(1)
    stage.nodes(1, first=1)
    stage.pod("v-1", node="n1", priority=1)
    _preemptor(stage, min_count, 2)
    stage.settles(g=2, v=0)


def gang_binds_what_fits_before_it_preempts(stage: Stage) -> None:
    _bind_first(stage, 1)


def basic_group_binds_what_fits_before_it_preempts(stage: Stage) -> None:
    _bind_first(stage, None)


# -- in one rack -------------------------------------------------------------------------------------------------------


def _racks(stage: Stage, *priorities: int) -> None:
    """Racks a, b, ... of two nodes each, full of pods of the priority of the rack."""
    for rack, priority in zip("abcd", priorities, strict=False):
        stage.nodes(2, prefix=rack, rack=rack)
        for i in range(2):
            stage.pod(f"{rack * 2}-{i}", node=f"{rack}{i}", priority=priority)


def _in_rack(stage: Stage, min_count: int, count: int) -> None:
    stage.group("g", min_count, key=RACK, priority=100)
    stage.members("g", count, priority=100)


def gang_preempts_in_the_only_rack(stage: Stage) -> None:
    _racks(stage, 1)
    _in_rack(stage, 2, 2)
    stage.settles(g=2, aa=0)


def gang_preempts_in_the_only_rack_where_it_may(stage: Stage) -> None:
    _racks(stage, 500, 1)
    _in_rack(stage, 2, 2)
    stage.settles(g=2, aa=2, bb=0)


def gang_preempts_in_one_of_two_racks(stage: Stage) -> None:
    _racks(stage, 1, 1)
    _in_rack(stage, 2, 2)
    stage.settles(g=2)
    assert len(stage.racks("g")) == 1
    assert len(stage.where("aa")) + len(stage.where("bb")) == 2


def gang_for_which_no_rack_is_large_enough_preempts_nobody(stage: Stage) -> None:
    _racks(stage, 1, 1)
    _in_rack(stage, 3, 3)
    stage.waits("g-0", g=0, aa=2, bb=2)


def gang_preempts_lesser_pods_of_a_rack_and_not_its_equals(stage: Stage) -> None:
    _racks(stage, 100, 100)
    _in_rack(stage, 2, 2)
    stage.waits("g-0", g=0, aa=2, bb=2)


def pod_that_comes_later_preempts_in_the_rack_of_the_others(stage: Stage) -> None:
    stage.nodes(3, prefix="a", rack="a")
    stage.nodes(2, prefix="b", rack="b")
    stage.pod("v-0", node="a2", priority=1)
    for i in range(2):
        stage.pod(f"w-{i}", node=f"b{i}", priority=500)
    _in_rack(stage, 2, 2)
    stage.settles(g=2, v=1)
    stage.members("g", 1, first=2, priority=100)
    stage.settles(g=3, v=0, w=2)
    assert stage.racks("g") == {"a"}


SCENARIOS: list[Scenario] = [
    gang_preempts_all_it_needs,
    basic_group_preempts_all_it_needs,
    gang_preempts_no_more_than_it_needs,
    basic_group_preempts_no_more_than_it_needs,
    pods_under_a_budget_are_spared_if_others_will_do,
    gang_preempts_on_several_nodes,
    nobody_is_preempted_in_vain,
    the_least_important_are_preempted,
    group_that_is_disrupted_as_one_goes_as_a_whole,
    basic_group_that_is_disrupted_as_one_goes_as_a_whole,
    group_of_higher_priority_is_not_preempted,
    gang_takes_what_it_can_get_beyond_its_quorum,
    basic_group_takes_what_it_can_get,
    lesser_group_is_not_spared_by_a_gang,
    lesser_group_is_not_spared_by_a_basic_group,
    gang_runs_in_part_where_a_whole_group_gave_way,
    basic_group_runs_in_part_where_a_whole_group_gave_way,
    gang_whose_pods_never_preempt_waits,
    gang_preempts_for_node_resources_and_spares_the_more_important,
    gang_preempts_for_resources_of_whole_pods,
    gang_preempts_for_its_anti_affinity,
    gang_preempts_for_its_ports,
    gang_preempts_for_its_spread,
    gang_binds_what_fits_before_it_preempts,
    basic_group_binds_what_fits_before_it_preempts,
    gang_preempts_in_the_only_rack,
    gang_preempts_in_the_only_rack_where_it_may,
    gang_preempts_in_one_of_two_racks,
    gang_for_which_no_rack_is_large_enough_preempts_nobody,
    gang_preempts_lesser_pods_of_a_rack_and_not_its_equals,
    pod_that_comes_later_preempts_in_the_rack_of_the_others,
]

"""Groups that stay within one rack."""

from __future__ import annotations

from tests.group_scenarios.stage import RACK, ZONE, Scenario, Stage


def _rack(stage: Stage, name: str, nodes: int, *, cpu: str = "1", taken: int = 0, zone: str = "z") -> None:
    """Nodes named after their rack, the first of them taken by pods that nobody may preempt."""
    stage.nodes(nodes, prefix=name, cpu=cpu, rack=name, zone=zone)
    for i in range(taken):
        stage.pod(f"taken-{name}{i}", cpu=cpu, node=f"{name}{i}", priority=1000)


def _group(stage: Stage, name: str, min_count: int | None, count: int, *, key: str = RACK) -> None:
    """Pods wait for their group: so even those of a basic group are tried together."""
    stage.members(name, count)
    stage.group(name, min_count, key=key)


def _only_feasible_rack(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 2, taken=1)
    _rack(stage, "b", 3)
    stage.nodes(1, prefix="none", cpu="64")
    _group(stage, "g", min_count, 3)
    stage.settles(g=3)
    assert stage.racks("g") == {"b"}


def gang_goes_to_the_only_rack_with_room(stage: Stage) -> None:
    _only_feasible_rack(stage, 3)


def basic_group_goes_to_the_rack_with_room_for_all(stage: Stage) -> None:
    _only_feasible_rack(stage, None)


def gang_waits_if_no_rack_is_large_enough(stage: Stage) -> None:
    _rack(stage, "a", 2)
    _rack(stage, "b", 2)
    _group(stage, "g", 3, 3)
    stage.waits("g-0", g=0)


def gang_waits_if_racks_are_taken(stage: Stage) -> None:
    _rack(stage, "a", 3, taken=1)
    _rack(stage, "b", 3, taken=2)
    _group(stage, "g", 3, 3)
    stage.waits("g-0", g=0)


def _fuller_rack(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 4)
    _rack(stage, "b", 2)
    _group(stage, "g", min_count, 2)
    stage.settles(g=2)
    assert stage.racks("g") == {"b"}


def gang_takes_the_rack_that_will_be_fuller(stage: Stage) -> None:
    _fuller_rack(stage, 2)


def basic_group_takes_the_rack_that_will_be_fuller(stage: Stage) -> None:
    _fuller_rack(stage, None)


def _rack_with_pods(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 4)
    _rack(stage, "b", 4, taken=2)
    _group(stage, "g", min_count, 2)
    stage.settles(g=2)
    assert stage.racks("g") == {"b"}


def gang_takes_the_rack_with_pods_already_there(stage: Stage) -> None:
    _rack_with_pods(stage, 2)


def basic_group_takes_the_rack_with_pods_already_there(stage: Stage) -> None:
    _rack_with_pods(stage, None)


def _two_groups(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 2)
    _rack(stage, "b", 2)
    _group(stage, "g", min_count, 2)
    stage.settles(g=2)
    _group(stage, "h", min_count, 2)
    stage.settles(g=2, h=2)
    assert stage.racks("g") | stage.racks("h") == {"a", "b"}
    assert len(stage.racks("g")) == len(stage.racks("h")) == 1


def two_gangs_take_a_rack_each(stage: Stage) -> None:
    _two_groups(stage, 2)


def two_basic_groups_take_a_rack_each(stage: Stage) -> None:
    _two_groups(stage, None)


def _same_rack(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 4)
    _group(stage, "g", min_count, 2)
    _group(stage, "h", min_count, 2)
    stage.settles(g=2, h=2)


def two_gangs_share_a_rack(stage: Stage) -> None:
    _same_rack(stage, 2)


def two_basic_groups_share_the_only_rack(stage: Stage) -> None:
    _same_rack(stage, None)


def _different_keys(stage: Stage, min_count: int | None) -> None:
    _rack(stage, "a", 1, zone="a")
    _rack(stage, "b", 1, zone="a")
    _rack(stage, "c", 2, zone="c")
    _group(stage, "g", min_count, 2, key=RACK)
    stage.settles(g=2)
    _group(stage, "h", min_count, 2, key=ZONE)
    stage.settles(g=2, h=2)
    assert stage.racks("g") == {"c"}
    assert stage.racks("h") == {"a", "b"}


def two_gangs_go_by_different_keys(stage: Stage) -> None:
    _different_keys(stage, 2)


def two_basic_groups_go_by_different_keys(stage: Stage) -> None:
    _different_keys(stage, None)


def of_two_gangs_only_one_fits(stage: Stage) -> None:
    _rack(stage, "a", 3)
    _rack(stage, "b", 1)
    _group(stage, "g", 2, 2)
    stage.settles(g=2)
    _group(stage, "h", 2, 2)
    stage.waits("h-0", g=2, h=0)


def of_two_basic_groups_one_does_not_fit_into_its_rack(stage: Stage) -> None:
    _rack(stage, "a", 3)
    _group(stage, "g", None, 2)
    stage.settles(g=2)
    _group(stage, "h", None, 2)
    stage.settles(g=2, h=1)
    stage.waits("h-1", h=1)


def gang_larger_than_its_quorum_stays_in_one_rack(stage: Stage) -> None:
    _rack(stage, "a", 2)
    _rack(stage, "b", 2)
    _group(stage, "g", 2, 3)
    stage.settles(g=2)
    stage.waits("g-2", g=2)
    assert len(stage.racks("g")) == 1


def gang_larger_than_its_quorum_takes_the_smaller_rack_if_that_will_be_fuller(stage: Stage) -> None:
    """All fit into either; the smaller one is full then."""
    _rack(stage, "a", 6)
    _rack(stage, "b", 3)
    _group(stage, "g", 2, 3)
    stage.settles(g=3)
    assert stage.racks("g") == {"b"}


def basic_group_is_scheduled_in_the_only_rack(stage: Stage) -> None:
    _rack(stage, "a", 3)
    _group(stage, "g", None, 3)
    stage.settles(g=3)


def basic_group_too_large_for_a_rack_goes_to_no_other(stage: Stage) -> None:
    _rack(stage, "a", 2)
    _rack(stage, "b", 1)
    _group(stage, "g", None, 3)
    stage.settles(g=2)
    stage.waits("g-2", g=2)
    assert stage.racks("g") == {"a"}


def basic_group_of_which_no_pod_fits_waits(stage: Stage) -> None:
    _rack(stage, "a", 2, taken=2)
    _group(stage, "g", None, 2)
    stage.waits("g-0", g=0)


def pods_of_a_basic_group_that_fit_are_scheduled_without_the_others(stage: Stage) -> None:
    _rack(stage, "a", 3)
    stage.members("g", 2)
    stage.members("g", 1, first=2, cpu="64")
    stage.group("g", None, key=RACK)
    stage.settles(g=2)
    stage.waits("g-2", g=2)


def basic_group_may_take_the_rack_where_not_all_fit(stage: Stage) -> None:
    """Three of four fit into the small rack, which is nearly full then; all fit into the large one, which is not."""
    _rack(stage, "a", 40)
    _rack(stage, "b", 8, taken=5)
    _group(stage, "g", None, 4)
    stage.settles(g=3)
    assert stage.racks("g") == {"b"}


def basic_group_goes_on_when_there_is_more_room_in_its_rack(stage: Stage) -> None:
    _rack(stage, "a", 1)
    _group(stage, "g", None, 3)
    stage.settles(g=1)
    stage.nodes(2, prefix="a", first=1, rack="a")
    stage.settles(g=3)


SCENARIOS: list[Scenario] = [
    gang_goes_to_the_only_rack_with_room,
    basic_group_goes_to_the_rack_with_room_for_all,
    gang_waits_if_no_rack_is_large_enough,
    gang_waits_if_racks_are_taken,
    gang_takes_the_rack_that_will_be_fuller,
    basic_group_takes_the_rack_that_will_be_fuller,
    gang_takes_the_rack_with_pods_already_there,
    basic_group_takes_the_rack_with_pods_already_there,
    two_gangs_take_a_rack_each,
    two_basic_groups_take_a_rack_each,
    two_gangs_share_a_rack,
    two_basic_groups_share_the_only_rack,
    two_gangs_go_by_different_keys,
    two_basic_groups_go_by_different_keys,
    of_two_gangs_only_one_fits,
    of_two_basic_groups_one_does_not_fit_into_its_rack,
    gang_larger_than_its_quorum_stays_in_one_rack,
    gang_larger_than_its_quorum_takes_the_smaller_rack_if_that_will_be_fuller,
    basic_group_is_scheduled_in_the_only_rack,
    basic_group_too_large_for_a_rack_goes_to_no_other,
    basic_group_of_which_no_pod_fits_waits,
    pods_of_a_basic_group_that_fit_are_scheduled_without_the_others,
    basic_group_may_take_the_rack_where_not_all_fit,
    basic_group_goes_on_when_there_is_more_room_in_its_rack,
]

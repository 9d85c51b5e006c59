"""Gangs and basic groups: when they are scheduled, and how they wait."""

from __future__ import annotations

from tests.group_scenarios.stage import HOSTNAME, Json, Scenario, Stage

SPREAD_OVER_NODES: Json = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": HOSTNAME}
        ]
    }
}


def gang_is_scheduled_when_group_and_room_are_there(stage: Stage) -> None:
    stage.nodes(3)
    stage.group("g", 3)
    stage.members("g", 3)
    stage.settles(g=3)


def gang_waits_for_its_quorum(stage: Stage) -> None:
    stage.nodes(3)
    stage.group("g", 3)
    stage.members("g", 2)
    stage.pod("x-0")
    stage.settles(x=1, g=0)
    stage.remove("Pod", "x-0")
    stage.members("g", 1, first=2)
    stage.settles(g=3)


def gang_waits_for_its_group_then_for_room(stage: Stage) -> None:
    stage.nodes(2)
    stage.members("g", 3)
    stage.pod("x-0")
    stage.settles(x=1, g=0)
    stage.remove("Pod", "x-0")
    stage.group("g", 3)
    stage.waits("g-0", "g-2", g=0)
    stage.nodes(1, first=2)
    stage.settles(g=3)


def pod_beyond_the_quorum_waits_for_room(stage: Stage) -> None:
    stage.nodes(3)
    stage.pod("x-0", node="n0")
    stage.group("g", 2)
    stage.members("g", 3)
    stage.settles(g=2)
    stage.remove("Pod", "x-0")
    stage.settles(g=3)


def _two_gangs(stage: Stage, order: str) -> None:
    stage.nodes(12)
    for name in "ab":
        stage.group(name, 8)
    for i in range(8):
        for name in order:
            stage.members(name, 1, first=i)
    stage.expect(lambda: sorted((len(stage.where("a")), len(stage.where("b")))) == [0, 8], "one gang runs")
    first, second = ("a", "b") if stage.where("a") else ("b", "a")
    stage.waits(f"{second}-0")
    for name in list(stage.where(first)):
        stage.remove("Pod", name)
    stage.settles(**{second: 8})


def of_two_gangs_one_runs_and_then_the_other(stage: Stage) -> None:
    _two_gangs(stage, "ab")


def of_two_gangs_one_runs_and_then_the_other_in_reversed_order(stage: Stage) -> None:
    _two_gangs(stage, "ba")


def members_that_fit_are_scheduled_though_another_never_will(stage: Stage) -> None:
    stage.nodes(2)
    stage.group("g", 2)
    stage.members("g", 1, cpu="64")
    stage.members("g", 2, first=1)
    stage.settles(g=2)
    stage.waits("g-0", g=2)


def single_pod_is_scheduled_while_a_group_that_cannot_be_is_tried(stage: Stage) -> None:
    stage.nodes(2)
    stage.group("g", 3)
    stage.members("g", 3)
    stage.pod("x-0")
    stage.settles(x=1, g=0)
    stage.waits("g-0", g=0)


def basic_group_is_scheduled_without_a_quorum(stage: Stage) -> None:
    stage.nodes(3)
    stage.group("g", None)
    stage.members("g", 1)
    stage.settles(g=1)
    stage.members("g", 2, first=1)
    stage.settles(g=3)


def basic_group_waits_for_its_group_and_part_of_it_for_room(stage: Stage) -> None:
    stage.nodes(2)
    stage.members("g", 3)
    stage.pod("x-0")
    stage.settles(x=1, g=0)
    stage.remove("Pod", "x-0")
    stage.group("g", None)
    stage.settles(g=2)
    stage.nodes(1, first=2)
    stage.settles(g=3)


def gang_without_quorum_is_scheduled_when_its_count_is_lowered(stage: Stage) -> None:
    stage.nodes(2)
    stage.group("g", 3)
    stage.members("g", 2)
    stage.pod("x-0", cpu="100m", nodeSelector={HOSTNAME: "nowhere"})
    stage.waits("x-0", g=0)
    stage.change_group("g", {"schedulingPolicy": {"gang": {"minCount": 2}}})
    stage.settles(g=2)


def gang_without_room_is_scheduled_when_its_count_is_lowered(stage: Stage) -> None:
    stage.nodes(2)
    stage.group("g", 3)
    stage.members("g", 3)
    stage.waits("g-0", g=0)
    stage.change_group("g", {"schedulingPolicy": {"gang": {"minCount": 2}}})
    stage.settles(g=2)


def gang_without_quorum_stays_so_when_its_count_is_raised(stage: Stage) -> None:
    stage.nodes(3)
    stage.group("g", 3)
    stage.members("g", 2)
    stage.change_group("g", {"schedulingPolicy": {"gang": {"minCount": 4}}})
    stage.members("g", 1, first=2)
    stage.pod("x-0")
    stage.settles(x=1, g=0)


# -- pods among each other ---------------------------------------------------------------------------------------------


def anti_affinity_among_members_is_honoured(stage: Stage) -> None:
    stage.nodes(3, cpu="8")
    stage.group("g", 3)
    stage.members("g", 3, affinity=SPREAD_OVER_NODES)
    stage.settles(g=3)
    assert len(set(stage.where("g").values())) == 3


def anti_affinity_that_cannot_be_honoured_keeps_the_gang_waiting(stage: Stage) -> None:
    stage.nodes(1, cpu="8")
    stage.group("g", 2)
    stage.members("g", 2, affinity=SPREAD_OVER_NODES)
    stage.waits("g-0", g=0)


def _claims(stage: Stage, *names: str) -> None:
    """Volume claims that are bound, for one pod each."""
    for name in names:
        spec = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "", "volumeMode": "Filesystem"}
        source = {"csi": {"driver": "d.example.com", "volumeHandle": name}}
        capacity = {"capacity": {"storage": "1Gi"}}
        claimed = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}}
        body = {"metadata": {"name": f"pv-{name}"}, "spec": spec | source | capacity | claimed}
        stage.create("v1", "PersistentVolume", body)
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        asked = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": f"pv-{name}"}
        body = {"metadata": {"name": name, "annotations": done}, "spec": spec | asked, "status": {"phase": "Bound"}}
        stage.create("v1", "PersistentVolumeClaim", body)


def _volumes(name: str) -> list[Json]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def members_that_share_a_volume_for_one_pod_keep_the_gang_waiting(stage: Stage) -> None:
    stage.nodes(2, cpu="8")
    _claims(stage, "shared")
    stage.group("g", 2)
    stage.members("g", 2, volumes=_volumes("shared"))
    stage.waits("g-0", g=0)


def members_with_a_volume_for_one_pod_each_are_scheduled(stage: Stage) -> None:
    stage.nodes(2, cpu="8")
    _claims(stage, "c0", "c1")
    stage.group("g", 2)
    for i in range(2):
        stage.members("g", 1, first=i, volumes=_volumes(f"c{i}"))
    stage.settles(g=2)


# -- newcomers, gates, groups that go ----------------------------------------------------------------------------------


def newcomers_of_a_gang_are_scheduled(stage: Stage) -> None:
    stage.nodes(4)
    stage.group("g", 2)
    stage.members("g", 2)
    stage.settles(g=2)
    stage.members("g", 2, first=2)
    stage.settles(g=4)


def newcomers_of_a_gang_that_waits_for_room_are_tried_with_it(stage: Stage) -> None:
    stage.nodes(2)
    stage.group("g", 2)
    stage.members("g", 2, cpu="64")
    stage.waits("g-0", g=0)
    stage.members("g", 2, first=2)
    stage.settles(g=2)


def _gated(stage: Stage, min_count: int | None) -> None:
    stage.nodes(3)
    stage.group("g", min_count)
    stage.members("g", 1, schedulingGates=[{"name": "example.com/wait"}])
    stage.members("g", 2, first=1)
    stage.pod("x-0", cpu="100m", nodeSelector={HOSTNAME: "nowhere"})
    stage.waits("x-0", g=0)
    stage.open_gates("g-0")
    stage.settles(g=3)


def gated_member_holds_its_gang_back(stage: Stage) -> None:
    _gated(stage, 2)


def gated_member_holds_its_basic_group_back(stage: Stage) -> None:
    _gated(stage, None)


def _gated_newcomer(stage: Stage, min_count: int | None) -> None:
    stage.nodes(1)
    stage.group("g", min_count)
    stage.members("g", 2, cpu="64")
    stage.waits("g-0", g=0)
    stage.members("g", 1, first=2, schedulingGates=[{"name": "example.com/wait"}])
    stage.nodes(3, first=1, cpu="64")
    stage.pod("x-0", nodeSelector={HOSTNAME: "n0"})
    stage.settles(x=1, g=0)
    stage.open_gates("g-2")
    stage.settles(g=3)


def gated_newcomer_holds_a_gang_back_that_was_to_be_tried(stage: Stage) -> None:
    _gated_newcomer(stage, 2)


def gated_newcomer_holds_a_basic_group_back_that_was_to_be_tried(stage: Stage) -> None:
    _gated_newcomer(stage, None)


def _deleted(stage: Stage, min_count: int | None, placed: int, waiting: int) -> None:
    """The group goes: pods that have a node keep it, others wait for another group of that name."""
    stage.nodes(placed)
    stage.group("g", min_count)
    stage.members("g", placed + waiting)
    stage.settles(g=placed if placed >= (min_count or 1) else 0)
    stage.remove("PodGroup", "g")
    stage.members("g", 1, first=9)
    stage.nodes(waiting + 2, first=placed)
    stage.pod("x-0")
    stage.settles(x=1)
    before = len(stage.where("g"))
    assert before == (placed if placed >= (min_count or 1) else 0)
    stage.group("g", min_count)
    stage.settles(g=placed + waiting + 1)


def pods_that_come_after_their_gang_is_deleted_wait_for_another(stage: Stage) -> None:
    _deleted(stage, 2, 2, 0)


def pods_that_come_after_their_basic_group_is_deleted_wait_for_another(stage: Stage) -> None:
    _deleted(stage, None, 2, 0)


def pods_left_over_when_their_gang_is_deleted_wait_for_another(stage: Stage) -> None:
    _deleted(stage, 2, 2, 1)


def pods_left_over_when_their_basic_group_is_deleted_wait_for_another(stage: Stage) -> None:
    _deleted(stage, None, 2, 1)


def pods_of_a_gang_that_did_not_fit_wait_for_another_when_it_is_deleted(stage: Stage) -> None:
    _deleted(stage, 3, 2, 1)


LOWERED: list[Scenario] = [
    gang_without_quorum_is_scheduled_when_its_count_is_lowered,
    gang_without_room_is_scheduled_when_its_count_is_lowered,
    gang_without_quorum_stays_so_when_its_count_is_raised,
]
"""Those that change a count, which only v1.37 allows."""
SCENARIOS: list[Scenario] = [
    gang_is_scheduled_when_group_and_room_are_there,
    gang_waits_for_its_quorum,
    gang_waits_for_its_group_then_for_room,
    pod_beyond_the_quorum_waits_for_room,
    of_two_gangs_one_runs_and_then_the_other,
    of_two_gangs_one_runs_and_then_the_other_in_reversed_order,
    members_that_fit_are_scheduled_though_another_never_will,
    single_pod_is_scheduled_while_a_group_that_cannot_be_is_tried,
    basic_group_is_scheduled_without_a_quorum,
    basic_group_waits_for_its_group_and_part_of_it_for_room,
    anti_affinity_among_members_is_honoured,
    anti_affinity_that_cannot_be_honoured_keeps_the_gang_waiting,
    members_that_share_a_volume_for_one_pod_keep_the_gang_waiting,
    members_with_a_volume_for_one_pod_each_are_scheduled,
    newcomers_of_a_gang_are_scheduled,
    newcomers_of_a_gang_that_waits_for_room_are_tried_with_it,
    gated_member_holds_its_gang_back,
    gated_member_holds_its_basic_group_back,
    gated_newcomer_holds_a_gang_back_that_was_to_be_tried,
    gated_newcomer_holds_a_basic_group_back_that_was_to_be_tried,
    pods_that_come_after_their_gang_is_deleted_wait_for_another,
    pods_that_come_after_their_basic_group_is_deleted_wait_for_another,
    pods_left_over_when_their_gang_is_deleted_wait_for_another,
    pods_left_over_when_their_basic_group_is_deleted_wait_for_another,
    pods_of_a_gang_that_did_not_fit_wait_for_another_when_it_is_deleted,
]

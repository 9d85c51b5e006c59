from __future__ import annotations

from msgspec.structs import replace
from tests.unit.scheduler.group_world import ALL_GATES, make_gang, members
from tests.unit.ui.observing import alive, still

from kubesched.testing import make_node, make_pod
from kubesched.ui.model.pending import NOT_SCHEDULED_HERE, WAITS_FOR_ITS_TURN, WOULD_FIT, PendingModel


def test_pods_with_the_same_cause_are_one_group() -> None:
    large = [make_pod(f"large-{i}").requests(cpu="9") for i in range(3)]
    picky = make_pod("picky").node_selector(disk="ssd").priority(7)
    views = still(make_node("a"), *large, picky, make_pod("fits"))
    found = views.pending.groups()
    assert [(group.title, group.pods) for group in found.groups] == [
        ("Insufficient cpu", 3),
        (WOULD_FIT, 1),
        ("node(s) didn't match Pod's node affinity/selector", 1),
    ]
    assert found.pods == 5
    assert found.groups[2].highest_priority == 7


def test_pod_of_another_scheduler_is_said_to_wait_for_it() -> None:
    views = still(make_node("a"), make_pod("p").spec(scheduler_name="other"))
    assert [group.title for group in views.pending.groups().groups] == [NOT_SCHEDULED_HERE]


def test_group_tells_what_its_pods_were_rejected_by_and_what_would_wake_them() -> None:
    world, views = alive(make_node("a"), make_pod("p").requests(cpu="9"))
    assert [group.title for group in views.pending.groups().groups] == [WAITS_FOR_ITS_TURN]
    world.tried()
    world.now = 12.0
    (group,) = views.pending.groups().groups
    assert (group.title, group.plugins, group.places) == (
        "Insufficient cpu",
        ("NodeResourcesFit",),
        {"unschedulable": 1},
    )
    assert group.longest_wait_seconds == 12.0
    assert any(phrase.startswith("Node added") for phrase in group.wakes)


def test_pods_of_a_group_come_in_pages_the_most_important_first() -> None:
    pods = [make_pod(f"p-{i:03}").requests(cpu="9").priority(i) for i in range(150)]
    views = still(make_node("a"), *pods)
    (group,) = views.pending.groups().groups
    total, first = views.pending.pods_of(group.id)
    _, second = views.pending.pods_of(group.id, offset=100)
    assert (total, len(first), len(second)) == (150, 100, 50)
    assert (first[0].pod, second[-1].pod) == ("default/p-149", "default/p-000")
    assert views.pending.pods_of("no such group") == (0, [])


def test_pod_that_backs_off_says_when_it_is_tried_next() -> None:
    world, views = alive(make_node("a"), make_pod("p").requests(cpu="9"))
    world.tried()
    world.see(make_node("b").capacity(cpu="10"))
    waiting = views.pending.find("default/p")
    assert waiting is not None
    line = views.pending.line(waiting)
    assert (line.place, line.attempts) == ("backoff", 1)
    assert line.next_try_seconds is not None


def test_gated_pod_waits_behind_its_gate() -> None:
    _, views = alive(make_node("a"), make_pod("p").gate("example.com/wait"))
    (group,) = views.pending.groups().groups
    assert (group.plugins, group.places) == (("SchedulingGates",), {"gated": 1})


def test_pod_in_an_attempt_is_still_there_and_gone_once_it_is_assumed() -> None:
    world, views = alive(make_node("a"), make_pod("p"))
    attempt = world.scheduler.pop()
    assert attempt is not None
    assert [group.pods for group in views.pending.groups().groups] == [1]
    world.scheduler.decide(attempt)
    assert views.pending.groups().pods == 0


def test_gang_that_waits_is_one_entry_with_all_of_its_pods() -> None:
    gang = members("g", 3)
    alone = make_pod("alone").requests(cpu="9")
    world, views = alive(make_node("a").capacity(cpu="2"), make_gang("g", 3), *gang, alone, features=ALL_GATES)
    attempt = world.scheduler.pop()
    while attempt is not None:
        world.scheduler.decide(attempt)
        attempt = world.scheduler.pop()
    found = {group.title: group for group in views.pending.groups().groups}
    [title] = [title for title in found if title.startswith("Pod group default/g: ")]
    assert (found[title].pods, views.pending.pods_of(found[title].id)[0]) == (3, 3)
    assert [group.pods for other, group in found.items() if other != title] == [1]


def test_a_pod_waits_since_it_was_created_and_says_when_it_was_tried_last() -> None:
    world, views = alive(make_node("a"), make_pod("p").requests(cpu="9"))
    world.tried()
    world.now = 600.0
    world.see(make_node("b").capacity(cpu="1"))
    world.scheduler.flush_leftovers()
    world.tried()
    world.now = 629.0
    waiting = views.pending.find("default/p")
    assert waiting is not None
    line = views.pending.line(waiting)
    assert (line.waits_seconds, line.tried_seconds) == (629.0, 29.0)
    (group,) = views.pending.groups().groups
    assert group.longest_wait_seconds == 629.0


def test_a_pod_that_is_older_than_the_queue_waits_since_its_creation() -> None:
    pod = make_pod("p").requests(cpu="9").build()
    pod = replace(pod, metadata=replace(pod.metadata, creation_timestamp="1970-01-01T00:10:00Z"))
    world, views = alive(make_node("a"), pod)
    world.tried()
    (group,) = PendingModel(views.observed, now=lambda: 1000.0).groups().groups
    assert group.longest_wait_seconds == 400.0


def test_pods_of_one_workload_are_one_card_whatever_else_speaks_against_some_nodes() -> None:
    """After a change of the cluster some were tried anew, and the others not yet."""
    web = [make_pod(f"web-{i}").requests(cpu="9").owned_by("ReplicaSet", "web") for i in range(3)]
    other = make_pod("api-0").requests(cpu="9").owned_by("ReplicaSet", "api")
    world, views = alive(make_node("a"), web[0], web[1], other)
    for _ in range(3):
        world.tried()
    world.see(make_node("b").taint("team", "x"))
    world.see(web[2])
    world.tried()
    found = views.pending.groups().groups
    assert [(group.workload, group.title, group.pods) for group in found] == [
        (("default", "ReplicaSet", "web"), "Insufficient cpu", 3),
        (("default", "ReplicaSet", "api"), "Insufficient cpu", 1),
    ]

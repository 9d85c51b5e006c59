from __future__ import annotations

import json

from tests.builders import make_node, make_pod
from tests.unit.scheduler.world import World

from kubesched.daemon.dumps import nominated_dump, queue_dump, state_dump


def test_queue_shows_who_waits_where_and_for_whom() -> None:
    world = World(
        make_node("n"),
        make_pod("lost").node_selector(rack="7").priority(9),
        make_pod("held").gate("wait"),
        make_pod("next"),
    )
    world.tried()
    found = queue_dump(world.scheduler)
    assert found["active"] == [{"pod": "default/next", "attempts": 0, "rejectedBy": []}]
    assert found["unschedulable"] == [{"pod": "default/lost", "attempts": 1, "rejectedBy": ["NodeAffinity"]}]
    assert [(held["pod"], held["gatedBy"]) for held in found["gated"]] == [("default/held", "SchedulingGates")]
    world.decided()
    assert queue_dump(world.scheduler)["active"] == []


def test_state_tells_assumed_pods_from_others_and_ghosts_from_nodes() -> None:
    world = World(make_node("n"), make_pod("there").on("n"), make_pod("orphan").on("gone"), make_pod("new"))
    world.decided()
    nodes = state_dump(world.scheduler)["nodes"]
    assert (nodes["n"]["pods"], nodes["n"]["assumed"]) == (["default/there"], ["default/new"])
    assert nodes["n"]["exists"]
    assert not nodes["gone"]["exists"]
    assert nodes["gone"]["pods"] == ["default/orphan"]


def test_nominated_pods_are_shown_by_node() -> None:
    world = World(make_node("n"), make_pod("promised").nominated("n"))
    assert nominated_dump(world.scheduler) == {"n": ["default/promised"]}


def test_dumps_are_plain_values() -> None:
    world = World(make_node("n"), make_pod("p"))
    for dump in (queue_dump, state_dump, nominated_dump):
        json.dumps(dump(world.scheduler))

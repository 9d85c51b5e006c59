"""What if, for the page: changes are made on a copy, and both sides are drawn."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from tests.unit.ui.observing import alive, service_of, still

from kubesched import config
from kubesched.ask.edits import EditError, SetWeight
from kubesched.ask.targets import RequestError
from kubesched.ask.what_if.what_if import AddedNodes, PageWhatIfQuestion, configuration_with
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.node_map import LIVE, NodeMap
from kubesched.ui.model.what_if import WhatIfView, what_if_view
from kubesched.ui.views import PageViews

CLUSTER = (
    make_node("node-1").zone("a").capacity(cpu="4"),
    make_node("node-2").zone("b").capacity(cpu="4"),
    make_pod("small").requests(cpu="1").on("node-1"),
    make_pod("large").requests(cpu="3").on("node-1"),
    make_pod("there").requests(cpu="3").on("node-2"),
)


def asked(views: PageViews, **question: Any) -> WhatIfView:
    outcome, _ = asyncio.run(service_of(views).what_if(PageWhatIfQuestion(**question)))
    return what_if_view(outcome, question.get("group", ""))


def test_drained_pods_move_or_wait_and_the_cluster_stays_as_it_is() -> None:
    views = still(*CLUSTER)
    version = views.map.version
    found = asked(views, drain=("node-1",))
    assert found.pods == {"moved": 1, "waiting": 1}
    assert [each.to_node for each in found.difference.moved] == ["node-2"]
    assert "Insufficient cpu" in found.difference.waiting[0].reason
    assert views.map.version == version


def test_node_that_is_deleted_is_on_one_of_the_maps_only_and_one_that_is_lost_on_both() -> None:
    zone, group = ("topology.kubernetes.io/zone=a",), "topology.kubernetes.io/zone"
    found = asked(still(*CLUSTER), gone=zone, group=group)
    assert found.before.names == ["node-1", "node-2"]
    assert live(found.after) == [("node-2", "b")]
    assert live(asked(still(*CLUSTER), lose=zone, group=group).after) == [("node-1", "a"), ("node-2", "b")]


def live(drawn: NodeMap) -> list[tuple[str, str]]:
    """Names and groups of the rows that are not holes."""
    flags = base64.b64decode(drawn.columns.flags)
    return [(name, group) for name, group, flag in zip(drawn.names, drawn.groups, flags, strict=True) if flag & LIVE]


def test_second_map_is_that_of_the_cluster_at_the_end_whatever_is_changed() -> None:
    question = PageWhatIfQuestion(drain=("node-2",), gone=("node-1",), add=(AddedNodes("node-1", 2),))
    outcome, _ = asyncio.run(service_of(still(*CLUSTER)).what_if(question))
    alone = what_if_view(outcome._replace(before=outcome.after), "").before
    after = what_if_view(outcome, "").after
    assert requested(after) == requested(alone)


def requested(drawn: NodeMap) -> dict[str, list[int]]:
    """Flags, pods and shares of every node, by its name."""
    texts = (drawn.columns.flags, *drawn.columns.shares.values())
    columns = [base64.b64decode(text) for text in texts]
    rows = enumerate(drawn.names)
    return {name: [column[row] for column in columns] for row, name in rows if columns[0][row] & LIVE}


def test_added_nodes_give_pods_that_wait_a_place() -> None:
    views = still(*CLUSTER, make_pod("waits").requests(cpu="4"))
    found = asked(views, add=(AddedNodes("node-1", 1),))
    assert [(each.pod, each.to_node) for each in found.difference.placed] == [("default/waits", "node-1-new-1")]


def test_live_cluster_is_asked_as_it_is_at_the_moment() -> None:
    world, views = alive(make_node("node-1").capacity(cpu="4"), make_node("node-2").capacity(cpu="4"))
    assert asked(views, drain=("node-1",)).pods["moved"] == 0
    world.see(make_pod("p").requests(cpu="1").on("node-1"))
    assert asked(views, drain=("node-1",)).pods["moved"] == 1


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({}, "nothing is changed"),
        ({"add": (AddedNodes("node-1", 9_999), AddedNodes("node-1", 2))}, "at most 10,000"),
        ({"weights": {"NodeAffinity": 0}}, "from 1 to"),
        ({"drain": tuple(map(str, range(10_001)))}, "at most"),
    ],
)
def test_question_that_cannot_be_asked_is_refused(question: dict[str, Any], said: str) -> None:
    with pytest.raises((RequestError, EditError), match=said):
        asked(still(*CLUSTER), **question)


def test_node_that_is_not_there_is_named() -> None:
    with pytest.raises(EditError, match="node-9"):
        asked(still(*CLUSTER), drain=("node-9",))


def test_weights_change_where_pods_go() -> None:
    settings = configuration_with(config.default(), [SetWeight("NodeResourcesFit", 7)])
    weights = {plugin.name: plugin.weight for plugin in settings.profiles[0].plugins.multi_point.enabled}
    assert weights["NodeResourcesFit"] == 7
    assert weights["TaintToleration"] == 3
    found = asked(still(*CLUSTER), weights={"NodeResourcesFit": 7}, anew=True)
    assert found.difference.changes == ("weight of NodeResourcesFit 7",)

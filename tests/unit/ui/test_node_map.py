from __future__ import annotations

import base64

import pytest
from tests.unit.ui.observing import alive, still

from kubesched.api.node import NodeCondition
from kubesched.testing import ZONE, make_node, make_pod
from kubesched.ui.model.node_map import CORDONED, FULL, LIVE, NOT_OFFERED, NOT_READY, TAINTED, Columns, flags_of


def unpacked(text: str) -> list[int]:
    return list(base64.b64decode(text))


def column(columns: Columns, resource: str) -> list[int]:
    return unpacked(columns.shares[resource])


def test_map_has_the_share_of_each_resource_that_is_requested() -> None:
    views = still(make_node("a").capacity(cpu="4", pods=10), make_pod("p").requests(cpu="1").on("a"))
    columns = views.map.whole("").columns
    assert column(columns, "cpu") == [FULL // 4]
    assert column(columns, "pods") == [FULL // 10]
    assert list(base64.b64decode(columns.pods)) == [1, 0]


def test_node_that_does_not_offer_a_resource_is_neither_empty_nor_full_of_it() -> None:
    views = still(make_node("a").capacity({"example.com/gpu": 2}), make_node("b"))
    assert column(views.map.whole("").columns, "example.com/gpu") == [0, NOT_OFFERED]


def test_node_that_promised_more_than_it_has_is_more_than_full() -> None:
    views = still(make_node("a").capacity(cpu="1"), make_pod("p").requests(cpu="1100m").on("a"))
    assert column(views.map.whole("").columns, "cpu") == [220]


def test_nodes_are_grouped_by_the_value_of_a_label() -> None:
    views = still(make_node("a").zone("z1"), make_node("b"))
    assert views.map.whole(ZONE).groups == ["z1", ""]
    assert views.map.whole("").groups == ["", ""]


@pytest.mark.parametrize(
    ("node", "flags"),
    [
        (make_node("a"), LIVE),
        (make_node("a").cordoned().taint("node.kubernetes.io/unschedulable"), LIVE | CORDONED),
        (make_node("a").taint("dedicated", "gpu"), LIVE | TAINTED),
        (make_node("a").taint("dedicated", "gpu", "PreferNoSchedule"), LIVE),
        (make_node("a").taint("node.kubernetes.io/unreachable", effect="NoExecute"), LIVE | NOT_READY),
        (make_node("a").status(conditions=(NodeCondition(type="Ready", status="Unknown"),)), LIVE | NOT_READY),
    ],
)
def test_flags_say_what_is_wrong_with_a_node(node: object, flags: int) -> None:
    assert flags_of(node.build()) == flags  # type: ignore[attr-defined]


def test_only_rows_that_changed_are_told_again() -> None:
    world, views = alive(make_node("a").capacity(cpu="4"), make_node("b"))
    version = views.map.version
    world.see(make_pod("p").requests(cpu="2").on("b"))
    changes = views.map.since(version, "")
    assert changes is not None
    assert (changes.rows, column(changes.columns, "cpu"), changes.renamed) == ([1], [FULL // 2], {})


def test_node_that_changed_says_its_name_and_group_again_to_every_page() -> None:
    world, views = alive(make_node("a"))
    version = views.map.version
    world.see(make_node("a").zone("z2").cordoned())
    for _ in range(2):
        changes = views.map.since(version, ZONE)
        assert changes is not None
        assert changes.renamed == {0: ("a", "z2")}
        assert unpacked(changes.columns.flags) == [LIVE | CORDONED]


def test_node_that_went_leaves_a_hole_that_is_not_live() -> None:
    world, views = alive(make_node("a"), make_node("b"))
    version = views.map.version
    world.lose(make_node("a"))
    changes = views.map.since(version, "")
    assert changes is not None
    assert (changes.rows, unpacked(changes.columns.flags)) == ([0], [0])


def test_page_that_knows_too_little_is_told_to_load_the_whole() -> None:
    world, views = alive(make_node("a"))
    version = views.map.version
    world.scheduler.state.nodes.changes.all_changed()
    assert views.map.since(version, "") is None
    assert views.map.since((version[0] + 99, version[1]), "") is None


def test_zones_and_pools_come_first_among_labels_to_group_by() -> None:
    node = make_node("a").zone("z").label({"app.example/x": "1", "cloud.example/nodepool": "p"})
    other = make_node("b").zone("z").label({"app.example/x": "2", "cloud.example/nodepool": "q"})
    keys = [label.key for label in still(node, other).map.label_keys()]
    assert keys[:2] == [ZONE, "cloud.example/nodepool"]
    assert "app.example/x" in keys


def test_labels_that_make_no_groups_and_old_names_of_labels_are_not_offered() -> None:
    """The list had arch and os twice, and a region that all nodes are in."""
    nodes = [
        make_node(f"n{i}").label(
            {
                "kubernetes.io/arch": ("amd64", "arm64")[i % 2],
                "beta.kubernetes.io/arch": ("amd64", "arm64")[i % 2],
                "topology.kubernetes.io/region": "eu-1",
                "kubernetes.io/hostname": f"n{i}",
            }
        )
        for i in range(4)
    ]
    assert [label.key for label in still(*nodes).map.label_keys()] == ["kubernetes.io/arch"]

"""Lists of nodes, pods and workloads: sorted, filtered, a page at a time."""

from __future__ import annotations

import dataclasses

from tests.unit.ui.observing import still

from kubesched.testing import make_node, make_pod
from kubesched.ui.model.lists import PAGE, ListQuery
from kubesched.ui.model.owners import WorkloadName
from kubesched.ui.model.usage import UsageReport
from kubesched.ui.views import PageViews


def cluster() -> PageViews:
    return still(
        make_node("a").zone("east").capacity(cpu="4", memory="8Gi"),
        make_node("b").zone("west").capacity(cpu="4", memory="8Gi").cordoned(),
        make_pod("web-0").owned_by("StatefulSet", "web").requests(cpu="3").on("a"),
        make_pod("db-0", namespace="data").owned_by("StatefulSet", "db").requests(cpu="1").on("b"),
        make_pod("db-1", namespace="data").owned_by("StatefulSet", "db").requests(cpu="9"),
    )


def test_pods_that_wait_are_listed_first() -> None:
    listing = cluster().lists.pods(ListQuery())
    assert [row.pod for row in listing.rows] == ["data/db-1", "data/db-0", "default/web-0"]
    assert listing.states == (("waiting", 1), ("starting", 2))
    assert listing.namespaces == ("data", "default")


def test_pods_are_filtered_by_namespace_phase_and_name() -> None:
    lists = cluster().lists
    assert [row.pod for row in lists.pods(ListQuery(namespace="data", state="starting")).rows] == ["data/db-0"]
    assert [row.pod for row in lists.pods(ListQuery(text="WEB")).rows] == ["default/web-0"]
    assert lists.pods(ListQuery(text="nobody")).total == 0


def test_nodes_are_sorted_by_any_column_in_both_directions() -> None:
    lists = cluster().lists
    assert [row.name for row in lists.nodes(ListQuery(sort="-cpu")).rows] == ["a", "b"]
    assert [row.name for row in lists.nodes(ListQuery(sort="cpu")).rows] == ["b", "a"]
    assert [row.name for row in lists.nodes(ListQuery(sort="-name")).rows] == ["b", "a"]
    assert [row.requested["cpu"] for row in lists.nodes(ListQuery()).rows] == [0.75, 0.25]


def test_nodes_are_filtered_by_state() -> None:
    listing = cluster().lists.nodes(ListQuery(state="cordoned"))
    assert [row.name for row in listing.rows] == ["b"]
    assert dict(listing.states) == {"ready": 1, "cordoned": 1}


def test_usage_stands_beside_requests_where_it_is_measured() -> None:
    views = cluster()
    report = UsageReport({"a": {"cpu": 2000}}, {"default/web-0": {"cpu": 1500}})
    seen = PageViews(dataclasses.replace(views.observed, usage=lambda: report))
    assert [row.used for row in seen.lists.nodes(ListQuery()).rows] == [{"cpu": 0.5}, {}]
    assert [row.used for row in seen.lists.pods(ListQuery(text="web")).rows] == [{"cpu": "1500m"}]
    node = seen.nodes.view("a")
    assert node is not None
    assert [(each.used, each.used_share) for each in node.resources if each.name == "cpu"] == [("2", 0.5)]


def test_workloads_with_pods_that_wait_come_first() -> None:
    listing = cluster().lists.workloads(ListQuery())
    assert [(row.name, row.phases["waiting"]) for row in listing.rows] == [("db", 1), ("web", 0)]
    assert listing.states == (("StatefulSet", 2),)


def test_long_list_comes_in_pages() -> None:
    views = still(*(make_node(f"n-{i:03}") for i in range(PAGE + 20)))
    listing = views.lists.nodes(ListQuery(offset=PAGE))
    assert (listing.total, len(listing.rows), listing.rows[0].name) == (PAGE + 20, 20, f"n-{PAGE:03}")


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    views = still(
        *(make_node(f"ip-{i}-x").capacity(cpu="1") for i in (10, 9, 100)),
        *(make_pod(f"web-{i}").owned_by("StatefulSet", "web").requests(cpu="9") for i in (10, 9, 100)),
    )
    assert [row.name for row in views.lists.nodes(ListQuery()).rows] == ["ip-9-x", "ip-10-x", "ip-100-x"]
    assert [row.name for row in views.lists.nodes(ListQuery(sort="-name")).rows] == ["ip-100-x", "ip-10-x", "ip-9-x"]
    pods = ["default/web-9", "default/web-10", "default/web-100"]
    assert [row.pod for row in views.lists.pods(ListQuery()).rows] == pods
    assert [row.pod for row in views.lists.pods(ListQuery(sort="name")).rows] == pods
    page = views.workloads.view(WorkloadName("default", "StatefulSet", "web"))
    assert page is not None
    assert [key for key, _, _ in page.members] == pods

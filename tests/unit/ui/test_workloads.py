"""Workloads on the page: what owns pods, how many are wanted, where they are, and why the next one waits."""

from __future__ import annotations

import pytest
from tests.unit.ui.observing import alive, still

from kubesched import config
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.pod import PodCondition
from kubesched.api.workloads import BudgetSpec, BudgetStatus, PodDisruptionBudget
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DaemonSet, Deployment, Job, PodWorkloadSpec, PodWorkloadStatus
from kubesched.testing import PodBuilder, make_node, make_pod
from kubesched.ui.model.owners import WorkloadName, owner_of, phase_of
from kubesched.ui.model.usage import UsageReport, read_usage
from kubesched.ui.model.workloads import wanted_pods
from kubesched.ui.sources import observe_manifests
from kubesched.ui.views import PageViews

WEB = WorkloadName("default", "Deployment", "web")


def web(number: int) -> PodBuilder:
    labels = {"app": "web", "pod-template-hash": "7d9f8c"}
    return make_pod(f"web-7d9f8c-{number}").label(labels).owned_by("ReplicaSet", "web-7d9f8c").requests(cpu="2")


# -- what owns a pod --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [
        ("ReplicaSet", "web-7d9f8c", ("Deployment", "web")),
        ("ReplicaSet", "bare", ("ReplicaSet", "bare")),
        ("StatefulSet", "db", ("StatefulSet", "db")),
        ("Job", "nightly-29384750", ("CronJob", "nightly")),
        ("Job", "backup-2", ("Job", "backup-2")),
    ],
)
def test_workload_is_what_a_person_made(kind: str, name: str, owner: tuple[str, str]) -> None:
    pod = make_pod("p").label({"pod-template-hash": "7d9f8c"}).owned_by(kind, name).build()
    assert owner_of(pod)[1:] == owner


def test_pod_without_an_owner_stands_for_itself() -> None:
    assert owner_of(make_pod("alone").build()) == ("default", "Pod", "alone")


def test_pod_is_waiting_then_starting() -> None:
    pod = make_pod("p").build()
    assert phase_of(pod, "") == "waiting"
    assert phase_of(pod, "node-1") == "starting"


# -- the page of one --------------------------------------------------------------------------------------------------


def test_workload_page_says_where_pods_are_and_why_the_next_one_waits() -> None:
    nodes = [make_node(name).zone(zone).capacity(cpu="3") for name, zone in (("a", "east"), ("b", "west"))]
    nodes.append(make_node("full").zone("north").capacity(cpu="1"))
    found = still(*nodes, web(0).on("a"), web(1).on("b"), web(2)).workloads.view(WEB)
    assert found is not None
    assert (found.line.pods, found.line.nodes, found.line.phases["waiting"]) == (3, 2, 1)
    assert found.zones == (("east", 1), ("north", 0), ("west", 1))
    assert found.example == "default/web-7d9f8c-2"
    assert [(title, pods) for title, pods in found.causes] == [("Insufficient cpu", 1)]
    assert found.verdict is not None
    assert found.verdict.node == ""
    assert found.room is not None
    assert found.room.more == 0
    assert [phase for _, phase, _ in found.members] == ["waiting", "starting", "starting"]


def test_workload_that_is_not_there_has_no_page() -> None:
    assert still(make_node("a")).workloads.view(WEB) is None


def test_budgets_that_guard_its_pods_are_named() -> None:
    selector = LabelSelector(match_labels={"app": "web"})
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=BudgetSpec(selector=selector, min_available=1),
        status=BudgetStatus(disruptions_allowed=1),
    )
    other = PodDisruptionBudget(metadata=ObjectMeta(name="else", namespace="other"), spec=BudgetSpec(selector=selector))
    found = still(make_node("a"), web(0).on("a"), budget, other).workloads.view(WEB)
    assert found is not None
    assert [(each.name, each.says, each.allowed) for each in found.budgets] == [("web", "at least 1 up", 1)]


def test_workload_wants_what_its_object_says() -> None:
    wants = [
        Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=PodWorkloadSpec(replicas=3)),
        DaemonSet(metadata=ObjectMeta(name="logs", namespace="default")),
        Job(metadata=ObjectMeta(name="train", namespace="default"), spec=PodWorkloadSpec(parallelism=2, completions=9)),
        Job(metadata=ObjectMeta(name="once", namespace="default")),
    ]
    assert [(each.kind, each.pods) for each in wanted_pods(wants)] == [
        ("Deployment", 3),
        ("DaemonSet", None),
        ("Job", 2),
        ("Job", 1),
    ]


def test_workload_without_pods_is_listed_with_what_it_wants() -> None:
    deployment = Deployment(metadata=ObjectMeta(name="web", namespace="default"), spec=PodWorkloadSpec(replicas=0))
    model = ClusterModel([deployment, make_node("a").build()], config.default())
    lines = PageViews(observe_manifests(model, "x")).workloads.lines()
    assert (lines[WEB].wanted, lines[WEB].pods) == (0, 0)


# -- history, usage ---------------------------------------------------------------------------------------------------


def test_equal_attempts_are_one_line_of_the_history() -> None:
    """The history of a pod that waited listed 107 equal attempts one by one."""
    world, views = alive(make_node("a").capacity(cpu="1"), make_pod("huge").requests(cpu="9"))
    for _ in range(4):
        world.tried()
        world.pass_seconds(400)
    log = views.observed.log
    assert log is not None
    (entry,) = log.of("default/huge")
    assert (entry.times, entry.attempt) == (4, 4)
    assert entry.first is not None
    assert entry.first < entry.at


def test_usage_is_read_from_what_the_metrics_api_says() -> None:
    node = {"metadata": {"name": "a"}, "usage": {"cpu": "1500m", "memory": "1Gi"}}
    container = {"name": "c", "usage": {"cpu": "250m", "memory": "100Mi"}}
    pod = {"metadata": {"name": "p", "namespace": "shop"}, "containers": [container, container, {"name": "odd"}]}
    report = read_usage([node, {"metadata": {"name": "b"}, "usage": {"cpu": "much"}}], [pod])
    assert report == UsageReport(
        {"a": {"cpu": 1500, "memory": 1 << 30}, "b": {}}, {"shop/p": {"cpu": 500, "memory": 200 << 20}}
    )


def test_quota_that_keeps_pods_from_being_created_is_told() -> None:
    failed = PodCondition(type="ReplicaFailure", status="True", message="exceeded quota: q")
    wants = Deployment(
        metadata=ObjectMeta(name="web", namespace="default"), status=PodWorkloadStatus(conditions=(failed,))
    )
    cluster = ClusterModel([make_node("a").build(), wants], config.default())
    page = PageViews(observe_manifests(cluster, "t")).workloads.view(WEB)
    assert page is not None
    assert page.refusal == "exceeded quota: q"

"""What an upgrade changes, for the page: by cause, and workload by workload; the cluster stays as it is."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.ui.observing import service_of, still

from kubesched import config
from kubesched.api.release import V1_36, V1_37
from kubesched.ask.releases.question import ReleaseQuestion, compare_now
from kubesched.ask.service import QuestionTimeoutError
from kubesched.ask.targets import RequestError
from kubesched.config import Features
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod
from kubesched.ui.model.owners import WorkloadName
from kubesched.ui.model.upgrade import UpgradeView, upgrade_view
from kubesched.ui.sources import observe_manifests
from kubesched.ui.views import PageViews


def urgent(name: str) -> PodBuilder:
    return make_pod(name).owned_by("StatefulSet", "urgent").label(index=name).requests(cpu="3").priority(10)


CLUSTER: tuple[NodeBuilder | PodBuilder, ...] = (
    make_node("n1").capacity(cpu="4"),
    make_pod("victim").requests(cpu="4").on("n1"),
    urgent("urgent-0"),
    urgent("urgent-1"),
    make_pod("alone").requests(cpu="2").priority(10),
)


def asked(views: PageViews, before: str = "1.36", after: str = "1.37") -> UpgradeView:
    found, _ = asyncio.run(compare_now(ReleaseQuestion(before, after), service_of(views)))
    return upgrade_view(found, views.observed.pods)


def written(text: str, *objects: NodeBuilder | PodBuilder, features: Features) -> PageViews:
    settings = config.load(text, features=features)
    return PageViews(observe_manifests(ClusterModel([each.build() for each in objects], settings), "cluster.yaml"))


def test_pods_of_a_workload_with_the_same_two_fates_are_one_row() -> None:
    [group] = asked(still(*CLUSTER)).groups
    assert [cause.name for cause in group.causes] == ["preemption_said"]
    assert group.causes[0].reference.endswith("/pull/140180")
    assert group.pods == 3
    assert {(row.workload, row.pods, row.count) for row in group.rows} == {
        (WorkloadName("default", "StatefulSet", "urgent"), ("default/urgent-0", "default/urgent-1"), 2),
        (WorkloadName("default", "Pod", "alone"), ("default/alone",), 1),
    }
    assert "found a potential placement" in group.rows[0].after
    assert "found a potential placement" not in group.rows[0].before


def test_looking_changes_nothing() -> None:
    views = still(*CLUSTER)
    version = views.map.version
    asked(views)
    assert views.map.version == version


def test_both_releases_read_what_was_written_and_fill_in_their_own_defaults() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n"
    view = asked(written(text, *CLUSTER, features=Features.of({}, V1_36)))
    changed = {each.setting: (each.before, each.after) for each in view.fields}
    assert "parallelism" not in changed
    assert changed["profiles[default-scheduler].plugins.multiPoint.enabled, order"][0].startswith("NodeUnschedulable")


def test_what_a_release_refuses_to_start_with_is_said_instead_of_pods() -> None:
    text = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles: [{plugins: {podGroupPostFilter: {disabled: [{name: "*"}]}}}]
    """
    view = asked(written(text, *CLUSTER, features=Features.of({}, V1_37)))
    assert view.refused == ("1.36: <config>: profiles[0].plugins.podGroupPostFilter: unknown field",)
    assert (view.summary, view.groups, view.method) == ("", (), "")


def test_gates_are_those_of_the_cluster_as_far_as_a_release_has_them() -> None:
    given = Features.of({"DRADeviceTaintRules": False, "GangScheduling": True, "GenericWorkload": True}, V1_36)
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    view = asked(written(text, *CLUSTER, features=given))
    assert view.refused == ("1.37: the feature gate GangScheduling cannot be set",)
    assert view.summary.startswith("3 pending pods, 1 placed: ")
    assert "GangScheduling" in {each.setting for each in view.gates}


@pytest.mark.parametrize(("followed", "expected"), [(V1_36, ("1.36", "1.37")), (V1_37, ("1.36", "1.37"))])
def test_without_an_earlier_release_it_is_the_one_of_the_cluster_or_the_one_before(
    followed: object, expected: tuple[str, str]
) -> None:
    assert isinstance(followed, type(V1_36))
    before, after = ReleaseQuestion().releases(followed)
    assert (before.name, after.name) == expected


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (ReleaseQuestion("1.2", "1.37"), "before: expected '1.36' or '1.37', got '1.2'"),
        (ReleaseQuestion("1.36", ""), "after: expected '1.36' or '1.37', got ''"),
        (ReleaseQuestion("1.37", "1.37"), "after: expected another release than before, which is 1.37"),
    ],
)
def test_what_cannot_be_compared_is_said(question: ReleaseQuestion, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        question.releases(V1_36)
    assert caught.value.lines == [said]


def test_comparison_that_takes_too_long_ends() -> None:
    views = still(*CLUSTER)
    service = service_of(views)
    service.slow_timeout = -1.0
    with pytest.raises(QuestionTimeoutError):
        asked(views)


def test_page_says_which_release_is_followed() -> None:
    about = still(*CLUSTER).about()
    assert (about.release, about.releases) == ("1.36", ["1.36", "1.37"])

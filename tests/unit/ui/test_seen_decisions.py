"""What the changes of a watch say about the decisions of another scheduler."""

from __future__ import annotations

import msgspec

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.ask.sources.following import Files
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.decisions import EntryLog, SeenDecisions
from kubesched.ui.model.pending import NOT_ASKED_YET
from kubesched.ui.sources import observe_following
from kubesched.ui.views import PageViews

replace = msgspec.structs.replace
POD = make_pod("p").requests(cpu="1").build()


def refused(pod: Pod, message: str, nominated: str = "") -> Pod:
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    return replace(pod, status=replace(pod.status, conditions=(condition,), nominated_node_name=nominated))


def bound(pod: Pod, node: str = "a") -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def told(*changes: Change[KubeObject]) -> list[tuple[str, str, str]]:
    seen = SeenDecisions(lambda: 7.0)
    for change in changes:
        seen.handling(change)
    return [(entry.outcome, entry.node, entry.text) for entry in seen.entries]


def test_binding_is_seen() -> None:
    assert told(Change(None, POD), Change(POD, bound(POD))) == [("bound", "a", "bound by default-scheduler")]


def test_what_was_there_before_is_no_news() -> None:
    assert told(Change(None, bound(POD)), Change(None, refused(POD, "no"))) == []


def test_each_reason_why_a_pod_waits_is_seen_once() -> None:
    first, second = refused(POD, "0/1 nodes"), refused(POD, "0/2 nodes")
    assert told(Change(POD, first), Change(first, first), Change(first, second)) == [
        ("unschedulable", "", "0/1 nodes"),
        ("unschedulable", "", "0/2 nodes"),
    ]


def test_nomination_is_seen() -> None:
    ((outcome, node, _),) = told(Change(POD, refused(POD, "no", nominated="a")))
    assert (outcome, node) == ("preempts", "a")


def test_pods_that_wait_are_counted_from_what_there_was_on() -> None:
    other = make_pod("q").build()
    seen = SeenDecisions(lambda: 7.0, [POD, other, bound(make_pod("r").build())])
    assert {pod.key for pod in seen.without_node()} == {"default/p", "default/q"}
    seen.handling(Change(POD, bound(POD)))
    seen.handling(Change(other, None))
    assert list(seen.without_node()) == []
    assert seen.of("default/q") == []


def followed(*objects: KubeObject) -> tuple[ClusterModel, PageViews]:
    cluster = ClusterModel((), config.default())
    cluster_time[0] = 1000.0
    for obj in objects:
        cluster.handle(Change(None, obj))
    files = Files("here", clock=lambda: 0.0)
    return cluster, PageViews(observe_following(cluster, files, "here", clock=lambda: cluster_time[0]))


def log_of(views: PageViews) -> EntryLog:
    assert views.observed.log is not None
    return views.observed.log


cluster_time = [1000.0]


def test_followed_cluster_is_shown_as_the_watch_has_it() -> None:
    cluster, views = followed(make_node("a").capacity(cpu="4").build(), POD)
    assert views.queue.counts().unschedulable == 1
    cluster.handle(Change(POD, bound(POD)))
    assert views.queue.counts().unschedulable == 0
    assert views.about().pending == 0
    assert [entry.at for entry in log_of(views).entries] == [1000.0]


def test_reason_is_asked_for_again_only_after_a_while_where_something_always_happens() -> None:
    cluster, views = followed(make_node("a").capacity(cpu="4").build(), make_pod("large").requests(cpu="9").build())
    assert views.pending.groups().groups[0].title == "Insufficient cpu"
    cluster.handle(Change(None, make_node("b").capacity(cpu="16").build()))
    assert views.pending.groups().groups[0].title == "Insufficient cpu"
    cluster_time[0] += 6.0
    assert views.pending.groups().groups[0].title == "Would be placed now"


def test_very_many_reasons_are_looked_for_a_few_at_a_time() -> None:
    pods = [make_pod(f"p-{i}").requests(cpu=str(10 + i)).build() for i in range(50)]
    _, views = followed(make_node("a").capacity(cpu="4").build(), *pods)
    titles = {group.title: group.pods for group in views.pending.groups().groups}
    assert titles == {"Insufficient cpu": 40, NOT_ASKED_YET: 10}
    assert views.pending.groups().groups[0].pods == 50

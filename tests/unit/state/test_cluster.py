from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.builders import make_cluster

from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod import PodStatus, ResourceRequirements
from kubesched.api.quantity import QuantityError
from kubesched.api.selectors import selector_from_labels
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.api.workloads import Namespace, ReplicaSet
from kubesched.framework.nodes import Nodes
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import NO_START_TIME, start_time
from kubesched.testing import ZONE, make_node, make_pod

WEB = make_pod("web").requests(cpu="1", memory="1Gi").label(app="web")


def cpu_in_use(state: ClusterState, node: str) -> int:
    return int(state.nodes.requested[state.nodes.resource_id("cpu"), state.nodes.row_of[node]])


def pods_on(state: ClusterState, node: str) -> set[str]:
    return {placed.pod.name for placed in state.pods.pods_on(state.nodes.row_of[node])}


def live_nodes(state: ClusterState) -> set[str]:
    return {name for name, row in state.nodes.row_of.items() if state.nodes.live[row]}


# -- nodes that come and go -------------------------------------------------------------------------------------------


def test_a_pod_may_be_seen_before_its_node() -> None:
    state = make_cluster(WEB.on("n1"))
    assert live_nodes(state) == set()
    state.apply(make_node("n1").build())
    assert live_nodes(state) == {"n1"}
    assert cpu_in_use(state, "n1") == 1000


def test_a_node_that_leaves_before_its_pods_stays_as_a_ghost_nobody_schedules_to() -> None:
    node, pod = make_node("n1").zone("a").taint("gpu").build(), WEB.on("n1").build()
    state = make_cluster(node, pod)
    state.delete(node)
    assert live_nodes(state) == set()
    assert state.nodes.live_count == 0
    assert state.nodes.order.names() == []
    assert pods_on(state, "n1") == {"web"}
    state.delete(pod)
    assert "n1" not in state.nodes.row_of


def test_a_pod_that_changes_after_its_node_left_still_counts_there() -> None:
    node, pod = make_node("n1").build(), WEB.on("n1")
    state = make_cluster(node, pod)
    state.delete(node)
    changed = pod.label(tier="front").build()
    state.apply(changed)
    assert pods_on(state, "n1") == {"web"}
    state.delete(changed)
    assert "n1" not in state.nodes.row_of


def test_a_node_added_again_under_its_name_finds_its_pods_but_not_its_old_labels() -> None:
    state = make_cluster(make_node("n1").zone("a"), WEB.on("n1"))
    zones = state.nodes.label(ZONE)
    state.delete(make_node("n1").build())
    state.apply(make_node("n1").capacity(cpu="16").build())
    row = state.nodes.row_of["n1"]
    assert zones.ids[row] == -1
    assert state.nodes.allocatable[state.nodes.resource_id("cpu"), row] == 16000
    assert cpu_in_use(state, "n1") == 1000


def test_the_row_of_a_node_that_left_is_clean_for_the_next_one() -> None:
    state = make_cluster(make_node("old").zone("a").cordoned().capacity({"a.b/gpu": 4}))
    state.delete(make_node("old").build())
    state.apply(make_node("new").build())
    row = state.nodes.row_of["new"]
    assert not state.nodes.unschedulable[row]
    assert state.nodes.allocatable[state.nodes.resource_id("a.b/gpu"), row] == 0


def test_deleting_a_node_nobody_knows_changes_nothing() -> None:
    state = make_cluster(make_node("n1"))
    state.delete(make_node("n2").build())
    assert live_nodes(state) == {"n1"}


def test_nodes_take_turns_by_zone_and_moving_zone_means_going_to_its_end() -> None:
    zones = {"a1": "a", "a2": "a", "b1": "b"}
    state = make_cluster(*(make_node(name).zone(zone) for name, zone in zones.items()))
    assert state.nodes.order.names() == ["a1", "b1", "a2"]
    state.apply(make_node("a1").zone("b").build())
    assert state.nodes.order.names() == ["a2", "b1", "a1"]


def test_columns_grow_with_the_cluster() -> None:
    state = make_cluster(make_node("first"), WEB.on("first"))
    matching = state.matches.counter(None, selector_from_labels({"app": "web"}))
    for i in range(300):
        state.apply(make_node(f"n{i}").capacity({f"a.b/r{i % 7}": 1}).build())
        state.apply(make_pod(f"p{i}").label(app="web").requests({f"a.b/r{i % 7}": 1}).on(f"n{i}").build())
    assert matching.counts.sum() == 301
    assert cpu_in_use(state, "first") == 1000
    assert state.nodes.requested[state.nodes.resource_id("a.b/r3")].sum() == 43


# -- assume, confirm, forget ------------------------------------------------------------------------------------------


def test_an_assumed_pod_counts_at_once() -> None:
    state = make_cluster(make_node("n1"))
    assert state.assume(WEB.build(), "n1").spec.node_name == "n1"
    assert cpu_in_use(state, "n1") == 1000


def test_a_forgotten_pod_leaves_no_trace() -> None:
    state = make_cluster(make_node("n1"))
    pod = state.assume(WEB.build(), "n1")
    state.forget(pod)
    assert cpu_in_use(state, "n1") == 0
    assert state.placed(pod) is None


def test_a_confirmed_pod_counts_once_and_can_no_longer_be_forgotten() -> None:
    state = make_cluster(make_node("n1"))
    pod = state.assume(WEB.build(), "n1")
    state.apply(replace(pod, status=PodStatus(phase="Running")))
    state.forget(pod)
    assert cpu_in_use(state, "n1") == 1000
    assert pods_on(state, "n1") == {"web"}


def test_a_pod_that_gets_the_labels_of_its_node_when_it_is_bound_counts_under_them_and_takes_no_more_room() -> None:
    state = make_cluster(make_node("n1"))
    counters = [state.matches.counter(None, selector_from_labels(labels)) for labels in ({"app": "web"}, {ZONE: "a"})]
    apart = WEB.pod_anti_affinity(ZONE, app="web").host_port(80)
    assumed = state.assume(apart.build(), "n1")
    version = state.matches.terms_version
    state.apply(apart.label({ZONE: "a"}).on("n1").build())
    assert [counter.counts[0] for counter in counters] == [1, 1]
    assert (cpu_in_use(state, "n1"), state.nodes.pod_count[0], state.matches.terms_version) == (1000, 1, version)
    state.delete(assumed)
    assert [counter.counts[0] for counter in counters] == [0, 0]
    assert (cpu_in_use(state, "n1"), state.pods.ports, list(state.matches.carried)) == (0, {}, [])


def test_a_pod_that_takes_less_room_after_a_resize_counts_for_less() -> None:
    state = make_cluster(make_node("n1"), WEB.on("n1"))
    state.apply(WEB.requests(cpu="250m").on("n1").build())
    assert cpu_in_use(state, "n1") == 250


def test_any_of_many_pods_on_a_node_may_go_in_any_order() -> None:
    state = make_cluster(make_node("n1"))
    pods = [state.assume(make_pod(name).build(), "n1") for name in "abcdef"]
    for i, left in ((1, "afcde"), (5, "aecd"), (0, "dec"), (2, "de"), (4, "d"), (3, "")):
        state.delete(pods[i])
        assert "".join(placed.pod.name for placed in state.pods.pods_on(0)) == left


def test_a_pod_shown_anew_goes_to_the_end_of_its_node_as_in_kube_scheduler_and_is_the_new_one() -> None:
    state = make_cluster(make_node("n1"))
    pods = [state.assume(make_pod(name).host_port(80 + i).build(), "n1") for i, name in enumerate("abc")]
    started = replace(pods[0], status=PodStatus(phase="Running", start_time="2026-01-01T00:00:00Z"))
    state.apply(started)
    on_row = state.pods.pods_on(state.nodes.row_of["n1"])
    assert [placed.pod.name for placed in on_row] == ["c", "b", "a"]
    assert on_row[-1].pod is started
    assert state.pods.start[on_row[-1].index] == on_row[-1].start == 1767225600.0
    assert set(state.pods.ports) == {("TCP", 80), ("TCP", 81), ("TCP", 82)}


def test_a_pod_bound_elsewhere_than_assumed_counts_where_it_is() -> None:
    state = make_cluster(make_node("n1"), make_node("n2"))
    state.assume(WEB.build(), "n1")
    state.apply(WEB.on("n2").build())
    assert (cpu_in_use(state, "n1"), cpu_in_use(state, "n2")) == (0, 1000)


def test_news_of_an_assumed_pod_from_before_it_was_bound_do_not_undo_the_assumption() -> None:
    state = make_cluster(make_node("n1"))
    state.assume(WEB.build(), "n1")
    state.apply(WEB.label(version="2").build())
    assert cpu_in_use(state, "n1") == 1000


def test_a_pod_cannot_be_assumed_twice() -> None:
    state = make_cluster(make_node("n1"))
    state.assume(WEB.build(), "n1")
    with pytest.raises(ValueError, match="default/web is placed already"):
        state.assume(WEB.build(), "n1")


def test_a_deleted_pod_is_forgotten_even_while_it_is_only_assumed() -> None:
    state = make_cluster(make_node("n1"))
    pod = state.assume(WEB.build(), "n1")
    state.delete(pod)
    assert cpu_in_use(state, "n1") == 0


# -- pods that change -------------------------------------------------------------------------------------------------


def test_a_pod_re_created_under_its_name_is_another_pod() -> None:
    old, new = make_pod("web", uid="1").requests(cpu="1"), make_pod("web", uid="2").requests(cpu="2")
    state = make_cluster(make_node("n1"), old.on("n1"), new.on("n1"))
    assert cpu_in_use(state, "n1") == 3000
    state.delete(old.build())
    assert cpu_in_use(state, "n1") == 2000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    state = make_cluster(make_node("n1"), WEB.on("n1"))
    state.apply(WEB.on("n1").status(phase=phase).build())
    assert cpu_in_use(state, "n1") == 0


def test_a_finished_pod_gives_up_the_node_it_was_promised() -> None:
    state = make_cluster(make_node("n1"))
    state.nominated.add(WEB.build(), "n1")
    state.apply(WEB.status(phase="Failed").build())
    assert state.nominated.on_node("n1") == []


def test_a_pod_that_arrives_needs_its_promise_no_longer() -> None:
    state = make_cluster(make_node("n1"), make_node("n2"))
    state.nominated.add(WEB.build(), "n1")
    state.apply(WEB.on("n2").build())
    assert state.nominated.node_of(WEB.build()) == ""


def test_resized_pods_count_with_what_they_were_granted() -> None:
    def resized(granted: str) -> PodStatus:
        held = ResourceRequirements(requests={"cpu": "1"})
        return PodStatus(resources=held, allocated_resources={"cpu": granted})

    pod = make_pod("p").pod_level(cpu="1").on("n1")
    state = make_cluster(make_node("n1"), replace(pod.build(), status=resized("2")))
    assert cpu_in_use(state, "n1") == 2000
    state.apply(replace(pod.build(), status=resized("3")))
    assert cpu_in_use(state, "n1") == 3000


# -- other objects ----------------------------------------------------------------------------------------------------


def test_namespaces_are_known_by_their_labels_and_unknown_ones_have_none() -> None:
    team = Namespace(metadata=ObjectMeta(name="team", labels={"owner": "a"}))
    state = make_cluster(team)
    assert state.namespace_labels("team") == {"owner": "a"}
    assert state.namespace_labels("nowhere") == {}
    state.delete(team)
    assert state.namespace_labels("team") == {}


def test_a_pod_that_is_assumed_is_no_longer_nominated_and_is_again_when_forgotten() -> None:
    state = make_cluster(make_node("n1"))
    pod = WEB.nominated("n1").build()
    state.nominated.add(pod, "n1")
    state.assume(pod, "n1")
    assert state.nominated.on_node("n1") == []
    state.forget(pod)
    assert state.nominated.node_of(pod) == "n1"


# -- resources --------------------------------------------------------------------------------------------------------


def test_what_no_node_offers_needs_no_column_and_is_counted_once_a_node_offers_it() -> None:
    gpu = "a.b/gpu"
    user = make_pod("user").requests({gpu: 2}).on("n1")
    state = make_cluster(make_node("n1"), user)
    assert gpu not in state.nodes.resources
    assert Nodes(state).requested(gpu).tolist() == [2]
    state.apply(make_node("n1").capacity({gpu: 4}).build())
    assert state.nodes.requested[state.nodes.resource_id(gpu), state.nodes.row_of["n1"]] == 2
    state.apply(make_node("n1").build())
    assert gpu not in state.nodes.resources
    state.delete(user.build())
    state.apply(make_node("n1").capacity({"a.b/other": 4}).build())
    assert Nodes(state).requested("a.b/other").tolist() == [0]


def test_of_very_many_resources_those_asked_for_last_have_the_columns() -> None:
    names = [f"a.b/r{i}" for i in range(300)]
    state = make_cluster(*(make_node(f"n{i}").capacity({name: 4}) for i, name in enumerate(names)))
    for i, name in enumerate(names):
        state.apply(make_pod(f"p{i}").requests({name: 1}).on(f"n{i}").build())
        state.give_columns(state.facts(make_pod("next").requests({name: 1, "a.b/r7": 1}).build()))
    assert len(state.nodes.allocatable) == 128
    assert {names[0], names[7], names[-1]} & set(state.nodes.resources) == {names[7], names[-1]}
    assert [int(Nodes(state).allocatable(name).sum()) for name in names] == [4] * len(names)
    assert [int(Nodes(state).requested(name).sum()) for name in names] == [1] * len(names)


def test_columns_go_with_the_last_node_that_has_them() -> None:
    state = make_cluster(make_node("n1").capacity({"a.b/common": 1}))
    strange = make_node("strange").capacity({"a.b/common": 1} | {f"a.b/r{i}": 1 for i in range(100)}).label(odd="yes")
    state.apply(strange.build())
    state.nodes.label("odd")
    assert len(state.nodes.allocatable) > 100
    state.delete(strange.build())
    assert len(state.nodes.allocatable) < 20
    assert "odd" not in state.nodes.labels
    assert Nodes(state).allocatable("a.b/common").tolist()[state.nodes.row_of["n1"]] == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:10Z", 10.0),
        ("0000-01-01T00:00:00Z", -62_167_219_200.0),  # what Go says, which has a year 0
        ("0000-02-29T00:00:00Z", -62_162_121_600.0),
        ("", NO_START_TIME),
        ("yesterday", NO_START_TIME),
        ("0000-13-01T00:00:00Z", NO_START_TIME),
    ],
)
def test_every_start_time_is_a_number(text: str, seconds: float) -> None:
    assert start_time(make_pod("p").started(text).build()) == seconds


def test_node_that_offers_no_quantity_changes_nothing() -> None:
    state = ClusterState()
    state.apply(make_node("n").capacity(cpu="4").build())
    broken = make_node("n").capacity(cpu="four").build()
    with pytest.raises(QuantityError):
        state.apply(broken)
    with pytest.raises(QuantityError):
        state.apply(make_node("new").capacity(cpu="four").build())
    row = state.nodes.row_of["n"]
    assert state.nodes.allocatable[0, row] == 4000
    assert state.nodes.node(row) != broken
    assert "new" not in state.nodes.row_of


# -- other objects ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "counts"), [(ReplicaSet, False), (PersistentVolumeClaim, True)])
def test_a_version_alone_counts_for_kinds_that_are_written(kind: type[KubeObject], counts: bool) -> None:
    """A ReplicaSet has a new status, which is not read, with every pod that starts."""
    state = make_cluster()
    first = kind(metadata=ObjectMeta(name="web", namespace="default", resource_version="1"))
    state.apply(first)
    before = state.objects.version(kind)
    newer = replace(first, metadata=replace(first.metadata, resource_version="2"))
    state.apply(newer)
    assert state.objects.get(kind, "web", "default") is newer
    assert (state.objects.version(kind) != before) == counts
    state.apply(replace(newer, metadata=replace(newer.metadata, labels={"app": "web"})))
    assert state.objects.version(kind) > before

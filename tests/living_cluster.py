"""A cluster to which anything may happen, in any order: the moves of the property tests, and a plain model of them.

The model is three dictionaries of objects. Whatever the cluster state keeps incrementally must equal what a state
built from these dictionaries has: that is the whole idea.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
)
from msgspec.structs import replace

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.node import Node, Taint
from kubesched.api.pod import ContainerPort, PersistentVolumeClaimSource, Pod, PodStatus, Volume
from kubesched.api.workloads import Namespace
from kubesched.library.builders import Resources
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, ZONE, PodBuilder, make_node, make_pod, pod_term

NODE_NAMES = ("n0", "n1", "n2", "n3")
POD_NAMES = ("p0", "p1", "p2", "p3", "p4", "p5")
NAMESPACES = ("default", "other")
APPS = ("web", "db")
SIZES = {"nginx:latest": 400 << 20, "redis:7": 900 << 20}


TAINTS: tuple[tuple[Taint, ...], ...] = (
    (),
    (Taint(key="dedicated", value="a", effect="NoSchedule"),),
    (Taint(key="dedicated", value="b", effect="PreferNoSchedule"), Taint(key="broken", effect="NoExecute")),
)
OFFERS: tuple[Resources, ...] = (
    {"cpu": "1", "memory": "1Gi", "pods": 1},
    {"cpu": "4", "memory": "4Gi", "pods": 3, "a.b/gpu": 2},
    {"cpu": "2", "memory": "4Gi", "pods": 110, "a.b/nic": 1, "hugepages-2Mi": "4Mi"},
)
DEMANDS: tuple[Resources, ...] = (
    {},
    {"cpu": "500m"},
    {"cpu": "1", "memory": "1Gi"},
    {"a.b/gpu": 1, "a.b/fpga": 2},
    {"a.b/nic": 1},
)
TERMS = (
    pod_term(HOSTNAME, {"app": "web"}),
    pod_term(ZONE, {"app": "web"}),
    pod_term(ZONE, {"app": "db"}, namespace_selector=LabelSelector(match_labels={"team": "a"})),
)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    node = make_node(draw(st.sampled_from(NODE_NAMES))).capacity(draw(st.sampled_from(OFFERS)))
    for key, values in ((ZONE, ("z1", "z2")), ("disk", ("ssd", "hdd"))):
        value = draw(st.none() | st.sampled_from(values))
        node = node if value is None else node.label({key: value})
    for image in draw(st.sets(st.sampled_from(sorted(SIZES)))):
        node = node.image(image, size=SIZES[image])
    node = node.spec(taints=draw(st.sampled_from(TAINTS)))
    return (node.cordoned() if draw(st.booleans()) else node).build()


@st.composite
def kinds(draw: st.DrawFn) -> PodBuilder:
    """What pods of one owner have in common. A history knows few kinds, so that many pods are alike."""
    pod = make_pod("", namespace=draw(st.sampled_from(NAMESPACES)))
    app = draw(st.none() | st.sampled_from(APPS))
    pod = pod if app is None else pod.label(app=app)
    pod = pod.requests(draw(st.sampled_from(DEMANDS))).priority(draw(st.sampled_from([0, 10])))
    return draw(_with_a_wish(pod))


@st.composite
def pods_of(draw: st.DrawFn, kind: st.SearchStrategy[PodBuilder]) -> Pod:
    """A pod without a node. Re-created under the same name, it has another uid."""
    name, generation = draw(st.sampled_from(POD_NAMES)), draw(st.integers(0, 1))
    # All start times differ: among victims that are alike in everything the choice would be arbitrary.
    pod = draw(kind).started(f"2026-01-01T00:{generation:02}:{POD_NAMES.index(name):02}Z")
    pod = pod.terminating() if draw(st.integers(0, 3)) == 0 else pod
    named = replace(pod.build().metadata, name=name, uid=f"{name}-{generation}")
    return replace(pod.build(), metadata=named)


@st.composite
def _with_a_wish(draw: st.DrawFn, pod: PodBuilder) -> PodBuilder:
    """At times with a term of pod (anti-)affinity, a claim, or ports of the node."""
    match draw(st.sampled_from(["nothing", "near", "far", "claim", "ports"])):
        case "near":
            return pod.pod_affinity_term(draw(st.sampled_from(TERMS)), weight=draw(st.sampled_from([0, 3])))
        case "far":
            return pod.pod_anti_affinity_term(draw(st.sampled_from(TERMS)), weight=draw(st.sampled_from([0, 3])))
        case "claim":
            source = PersistentVolumeClaimSource(claim_name=draw(st.sampled_from(["data", "logs"])))
            return pod.spec(volumes=(Volume(name="volume", persistent_volume_claim=source),))
        case "ports":
            for ip in draw(st.sampled_from([("",), ("10.0.0.1",), ("", "10.0.0.1")])):
                pod = pod.host_port(8080, ip=ip)
    return pod


@dataclass(frozen=True)
class Placed:
    """A pod that counts on its node."""

    pod: Pod
    assumed: bool

    @property
    def node(self) -> str:
        return self.pod.spec.node_name


class LivingCluster(RuleBasedStateMachine):
    """Nodes and pods come, change and go; pods are assumed, confirmed, forgotten."""

    known_kinds: Bundle[PodBuilder] = Bundle("kinds")

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, Placed] = {}
        self.namespaces: dict[str, Namespace] = {}

    def built_anew(self) -> ClusterState:
        """A state that has only ever seen what is there now."""
        state = ClusterState()
        for obj in (*self.namespaces.values(), *self.nodes.values()):
            state.apply(obj)
        for placed in self.placed.values():
            if placed.assumed:
                state.assume(on(placed.pod, ""), placed.node)
            else:
                state.apply(placed.pod)
        return state

    @initialize(crowd=st.sampled_from([0, 0, 63]))
    def begin_small_or_just_before_the_columns_grow(self, crowd: int) -> None:
        for i in range(crowd):
            self._apply_node(make_node(f"crowd-{i:02}").zone(f"z{i % 4}").build())

    @initialize(target=known_kinds, some=st.lists(kinds(), min_size=2, max_size=4))
    def begin_with_a_few_kinds_of_pods(self, some: list[PodBuilder]) -> MultipleResults[PodBuilder]:
        return multiple(*some)

    # -- nodes --------------------------------------------------------------------------------------------------------

    @rule(node=nodes())
    def node_arrives_or_changes(self, node: Node) -> None:
        self._apply_node(node)

    @rule(name=st.sampled_from(NODE_NAMES))
    def node_leaves(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.state.delete(make_node(name).build())

    def _apply_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.state.apply(node)

    # -- pods, as the watch shows them --------------------------------------------------------------------------------

    @rule(pod=pods_of(known_kinds), node=st.sampled_from(NODE_NAMES))
    def pod_is_seen_on_a_node(self, pod: Pod, node: str) -> None:
        self._see_bound(self._with_free_ports(pod, node), node)

    @rule(pod=pods_of(known_kinds))
    def pod_is_seen_pending(self, pod: Pod) -> None:
        known = self.placed.get(pod.uid)
        if known is not None and not known.assumed:
            del self.placed[pod.uid]
        self.state.apply(pod)

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), how=st.sampled_from(["finishes", "is deleted"]))
    def pod_ends(self, data: st.DataObject, how: str) -> None:
        pod = self.placed.pop(data.draw(st.sampled_from(sorted(self.placed)))).pod
        if how == "is deleted":
            self.state.delete(pod)
        else:
            self.state.apply(replace(pod, status=PodStatus(phase="Succeeded")))

    # -- pods, as the scheduler decides -------------------------------------------------------------------------------

    @rule(pod=pods_of(known_kinds), node=st.sampled_from(NODE_NAMES))
    def pod_is_assumed(self, pod: Pod, node: str) -> None:
        if pod.uid in self.placed:
            return
        pod = self._with_free_ports(pod, node)
        self.placed[pod.uid] = Placed(on(pod, node), assumed=True)
        self.state.assume(pod, node)

    @precondition(lambda self: any(placed.assumed for placed in self.placed.values()))
    @rule(data=st.data(), as_it_was=st.booleans())
    def assumption_is_confirmed(self, data: st.DataObject, as_it_was: bool) -> None:
        pod = self._draw_assumed(data).pod
        if not as_it_was:
            pod = replace(pod, metadata=replace(pod.metadata, resource_version="2"))
        self._see_bound(pod, pod.spec.node_name)

    @precondition(lambda self: any(placed.assumed for placed in self.placed.values()))
    @rule(data=st.data())
    def assumption_is_forgotten(self, data: st.DataObject) -> None:
        pod = self._draw_assumed(data).pod
        del self.placed[pod.uid]
        self.state.forget(pod)

    # -- namespaces ---------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from(["a", "b"]))
    def namespace_is_labelled(self, name: str, team: str) -> None:
        self.namespaces[name] = Namespace(metadata=ObjectMeta(name=name, labels={"team": team}))
        self.state.apply(self.namespaces[name])

    # -- the model ----------------------------------------------------------------------------------------------------

    def _see_bound(self, pod: Pod, node: str) -> None:
        self.placed[pod.uid] = Placed(on(pod, node), assumed=False)
        self.state.apply(on(pod, node))

    def _draw_assumed(self, data: st.DataObject) -> Placed:
        uids = sorted(uid for uid, placed in self.placed.items() if placed.assumed)
        return self.placed[data.draw(st.sampled_from(uids))]

    def _with_free_ports(self, pod: Pod, node: str) -> Pod:
        """Real nodes have at most one holder of an address and port."""
        held = {
            port.host_ip
            for placed in self.placed.values()
            if placed.node == node and placed.pod.identity != pod.identity
            for port in _ports(placed.pod)
        }
        free = tuple(port for port in _ports(pod) if port.host_ip not in held)
        container = replace(pod.spec.containers[0], ports=free)
        return replace(pod, spec=replace(pod.spec, containers=(container,)))


def on(pod: Pod, node: str) -> Pod:
    """The pod as it is once bound; without a name, as it was before."""
    return replace(pod, spec=replace(pod.spec, node_name=node))


def _ports(pod: Pod) -> tuple[ContainerPort, ...]:
    return pod.spec.containers[0].ports

"""Whatever is asked, the cluster is the same afterwards, to the order of the pods of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.device_builders import device, make_claim, make_class, make_slice, request
from tests.living_cluster import NODE_NAMES, kinds, nodes, on

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.device_claims import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodResourceClaim, PodStatus
from kubesched.api.storage import (
    ClaimStatus,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeResources,
)
from kubesched.ask.edits import AddNodes, DrainNodes, RemoveNodes
from kubesched.ask.explain import explain
from kubesched.ask.hypothetical import apply_to_trial
from kubesched.ask.targets import RequestObjects
from kubesched.ask.trial import Trial
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_pod

Draw = Callable[[st.SearchStrategy[Any]], Any]

GPU = request("gpu")
VOLUME = PersistentVolumeSpec(capacity={"storage": "1Gi"}, access_modes=("ReadWriteOnce",), storage_class_name="late")
AVAILABLE = ClaimStatus(phase="Available")
CLAIM = PersistentVolumeClaimSpec(
    access_modes=("ReadWriteOnce",), storage_class_name="late", resources=VolumeResources(requests={"storage": "1Gi"})
)
OTHERS: tuple[KubeObject, ...] = (
    make_class("gpu"),
    make_slice("n0", device("gpu-0"), device("gpu-1")),
    make_claim("mine", GPU),
    make_claim("ours", GPU),
    ResourceClaimTemplate(
        metadata=ObjectMeta(name="one-gpu", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=make_claim("any", GPU).spec),
    ),
    StorageClass(metadata=ObjectMeta(name="late"), volume_binding_mode="WaitForFirstConsumer"),
    *(PersistentVolume(metadata=ObjectMeta(name=f"pv-{i}"), spec=VOLUME, status=AVAILABLE) for i in range(2)),
    *(
        PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=CLAIM)
        for name in ("data", "logs")
    ),
)
NEW = make_pod("new")
CLAIMS = {
    "mine": PodResourceClaim(name="c", resource_claim_name="mine"),
    "one-gpu": PodResourceClaim(name="c", resource_claim_template_name="one-gpu"),
}


@st.composite
def clusters(draw: st.DrawFn) -> list[KubeObject]:
    """Nodes, pods on nodes that may not be there, pods that wait, some of them promised a node."""
    there = {node.name: node for node in draw(st.lists(nodes(), min_size=1, max_size=6))}
    pods = []
    for i in range(draw(st.integers(0, 8))):
        pod = replace(draw(kinds()).build(), metadata=ObjectMeta(name=f"p{i}", namespace="default", uid=f"uid-{i}"))
        match draw(st.sampled_from(["on a node", "waits", "is promised a node"])):
            case "on a node":
                pod = on(pod, draw(st.sampled_from(NODE_NAMES)))
            case "is promised a node":
                pod = replace(pod, status=PodStatus(nominated_node_name=draw(st.sampled_from(NODE_NAMES))))
        pods.append(pod)
    return [*there.values(), *OTHERS, *pods]


def ask(draw: Draw, cluster: ClusterModel) -> None:
    """Suppose some changes, place some pods, explain one."""
    with Trial(cluster) as trial:
        for _ in range(draw(st.integers(0, 3))):
            change = _change(draw, cluster)
            if change is not None:
                trial.change(change)
        live = sorted(node.name for node in cluster.all(Node))
        if live and draw(st.booleans()):
            lost = tuple(draw(st.lists(st.sampled_from(live), min_size=1, unique=True)))
            edit = draw(st.sampled_from([RemoveNodes(lost), DrainNodes(lost), AddNodes(lost[0], 2)]))
            apply_to_trial([edit], trial, RequestObjects(cluster), lambda: None)
        there = sorted(cluster.pods)
        for i in range(draw(st.integers(0, 4))):
            if there and draw(st.booleans()):
                trial.place(cluster.pods[_taken(draw, there)])
            else:
                trial.place(_new_pod(draw, i))
        if there and draw(st.booleans()):
            explain(cluster, cluster.pods[_taken(draw, there)], with_remedies=draw(st.integers(0, 3)) == 0)


def _taken(draw: Draw, names: list[str]) -> str:
    return names.pop(draw(st.integers(0, len(names) - 1)))


def _new_pod(draw: Draw, i: int) -> Pod:
    claim = draw(st.sampled_from(["", *CLAIMS]))
    pod = draw(kinds()).build() if not claim else NEW.spec(resource_claims=(CLAIMS[claim],)).build()
    return replace(pod, metadata=replace(pod.metadata, name=f"new-{i}", namespace="default", uid=f"new-{i}"))


def _change(draw: Draw, cluster: ClusterModel) -> Change[KubeObject] | None:
    state = cluster.state
    what = draw(st.sampled_from(["node", "lost node", "pod", "moved pod", "other", "new"]))
    live = sorted(name for name, row in state.nodes.row_of.items() if state.nodes.live[row])
    known = None if not cluster.pods else cluster.pods[draw(st.sampled_from(sorted(cluster.pods)))]
    match what:
        case "node":
            node: Node = draw(nodes())
            row = state.nodes.row_of.get(node.name)
            return Change(None if row is None else state.nodes.nodes[row], node)
        case "lost node" if live:
            return Change(state.nodes.node(state.nodes.row_of[draw(st.sampled_from(live))]), None)
        case "pod" if known is not None:
            return Change(known, None)
        case "moved pod" if known is not None:
            return Change(known, on(known, draw(st.sampled_from(NODE_NAMES))))
        case "other":
            obj = draw(st.sampled_from(OTHERS))
            found = state.objects.get(type(obj), obj.name, obj.namespace)
            return None if found is None else Change(found, None)
        case "new":
            return Change(None, make_claim(f"more-{draw(st.integers(0, 3))}", GPU))
    return None


def seen(cluster: ClusterModel) -> dict[str, Any]:
    """All that decisions can depend on."""
    state, table = cluster.state, cluster.state.nodes
    rows = [row for row in range(table.size) if table.names[row]]
    return {
        "rows": {table.names[row]: row for row in rows},
        "nodes": {row: (table.nodes[row], bool(table.live[row])) for row in rows},
        "count": table.live_count,
        "order": list(table.order.names()),
        "totals": {
            (name, row): (column[0][row], column[1][row], column[2][row])
            for name, i in sorted(table.resources.items())
            for column in [(table.allocatable[i], table.requested[i], table.scoring_requested[i])]
            for row in rows
            if any(part[row] for part in column)
        },
        "pods on nodes": {
            row: [(placed.pod, placed.assumed, placed.place) for placed in state.pods.pods_on(row)] for row in rows
        },
        "pod counts": {row: int(table.pod_count[row]) for row in rows},
        "ports": state.pods.ports,
        "claims": state.pods.claim_users,
        "priorities": state.pods.by_priority,
        "pods": list(cluster.pods.items()),
        "nominated": {name: state.nominated.on_node(name) for name in sorted(state.nominated.nodes)},
        "templates": cluster.templates,
        "objects": {kind: list(state.objects.all(kind)) for kind in {type(obj) for obj in OTHERS}},
    }


def decisions(cluster: ClusterModel) -> list[Any]:
    """What the engine says to all pods that wait, and to a few more."""
    found = []
    more = [NEW.spec(resource_claims=(CLAIMS["mine"],)).build(), NEW.label(app="web").build()]
    for pod in (*cluster.pending(), *more):
        decision = cluster.engine.decide(pod, explain=True)
        scores = decision.trace.scores
        found.append((decision.node, decision.message, None if scores is None else np.asarray(scores.total).tolist()))
    return found


@settings(max_examples=60, deadline=None)
@given(objects=clusters(), data=st.data())
def test_cluster_is_the_same_after_any_question(objects: list[KubeObject], data: st.DataObject) -> None:
    cluster = ClusterModel(objects, config.default(), draw=lambda among: 0)
    before, decided = seen(cluster), decisions(cluster)
    for _ in range(2):
        ask(data.draw, cluster)
        assert seen(cluster) == before
        assert decisions(cluster) == decided

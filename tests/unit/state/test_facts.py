"""What pods have in common: all of it, or all but the node that they must go to."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.builders import make_cluster, make_engine

from kubesched.api.affinity import Affinity, NodeAffinity
from kubesched.api.pod import Pod
from kubesched.kube.decoding import RecordCodec
from kubesched.state.cluster import ClusterState
from kubesched.testing import PodBuilder, make_node, make_pod, node_term

DAEMON = make_pod("daemon").label(app="agent").requests(cpu="100m", memory="64Mi")


def for_node(name: str, pod: PodBuilder = DAEMON) -> PodBuilder:
    """As the controller of DaemonSets makes them."""
    return pod.requires_node(node_term("metadata.name", "In", name))


@pytest.fixture
def state() -> ClusterState:
    return make_cluster(make_node("n1"), make_node("n2"))


def shown(name: str, *volumes: dict[str, Any]) -> Pod:
    """A pod of a ReplicaSet as an API server shows it: the token is in a volume whose name no other pod has."""
    token = {"name": f"kube-api-access-{name}", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9", "uid": "rs-1", "controller": True}
    mounts = [{"name": token["name"], "mountPath": "/var/run/secrets", "readOnly": True}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-7d9-{name}",
            "generateName": "web-7d9-",
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": name,
            "labels": {"app": "web", "pod-template-hash": "7d9"},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [{"name": "web", "image": "nginx", "volumeMounts": mounts}],
            "volumes": [*volumes, token],
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
        },
    }
    return RecordCodec(Pod).decode(msgspec.json.encode(pod))


def test_pods_of_a_replica_set_are_equivalent_though_each_has_its_token_in_another_volume(state: ClusterState) -> None:
    scratch = {"name": "scratch", "emptyDir": {}}
    assert state.facts(shown("1", scratch)) is state.facts(shown("2", scratch))


def test_volumes_that_matter_make_a_difference(state: ClusterState) -> None:
    first, second = ({"name": "data", "persistentVolumeClaim": {"claimName": name}} for name in ("a", "b"))
    pod = shown("1", first, {"name": "scratch", "emptyDir": {}})
    assert [volume.name for volume in pod.spec.volumes] == ["data"]
    assert state.facts(pod) is not state.facts(shown("2", second))
    assert state.facts(pod).claims == ("default/a",)


def test_pods_for_different_nodes_are_not_equivalent_but_have_all_else_in_common(state: ClusterState) -> None:
    first, second = state.facts(for_node("n1").build()), state.facts(for_node("n2").build())
    assert first is not second
    assert first.fingerprint != second.fingerprint
    assert first.without_node_names is second.without_node_names
    assert first.amounts is second.amounts
    assert first.requests.tolist() == second.requests.tolist()


@pytest.mark.parametrize(
    "other",
    [DAEMON.requests(cpu="200m"), DAEMON.label(tier="b"), DAEMON.toleration(operator="Exists"), DAEMON.priority(7)],
)
def test_pods_that_differ_in_anything_else_share_no_facts(state: ClusterState, other: PodBuilder) -> None:
    first, second = state.facts(for_node("n1").build()), state.facts(for_node("n1", other).build())
    assert first.without_node_names is not second.without_node_names


@pytest.mark.parametrize("affinity", [None, Affinity(node_affinity=NodeAffinity())])
def test_a_pod_that_may_go_anywhere_is_no_kin_of_those_that_may_not(
    state: ClusterState, affinity: Affinity | None
) -> None:
    pod = DAEMON.build()
    anywhere = state.facts(replace(pod, spec=replace(pod.spec, affinity=affinity)))
    bound = state.facts(for_node("n1").build())
    assert anywhere.without_node_names is anywhere
    assert bound.without_node_names is not anywhere


def test_required_affinity_that_names_no_node_shares_no_facts(state: ClusterState) -> None:
    pod = DAEMON.requires_node(node_term("disk", "In", "ssd")).build()
    facts = state.facts(pod)
    assert facts.without_node_names is facts


def test_facts_follow_the_columns_of_resources_whoever_was_asked_first(state: ClusterState) -> None:
    wants = DAEMON.requests({"a.b/gpu": 1})
    first, second = state.facts(for_node("n1", wants).build()), state.facts(for_node("n2", wants).build())
    state.apply(make_node("n3").capacity({"cpu": "1", "a.b/gpu": 2}).build())
    third = state.facts(for_node("n3", wants).build())
    state.give_columns(third)
    assert {facts.takes for facts in (first, second, third)} == {((state.nodes.resources["a.b/gpu"], 1),)}


def test_kin_goes_with_the_last_pod_that_has_it(state: ClusterState) -> None:
    first, second = state.facts(for_node("n1").build()), state.facts(for_node("n2").build())
    shared = weakref.ref(first.without_node_names)
    gc.disable()
    try:
        del first
        assert shared() is not None
        del second
        assert shared() is None  # and not only when the garbage collector comes
    finally:
        gc.enable()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_each_goes_where_it_must_whoever_was_decided_first(order: tuple[int, ...]) -> None:
    """What plugins skip for a pod that may go anywhere, they must not skip for one that may not."""
    state = make_cluster(make_node("n1"), make_node("n2"), make_node("n3"))
    engine = make_engine(state)
    pods = {0: (DAEMON, "n1"), 1: (for_node("n2"), "n2"), 2: (for_node("n3"), "n3")}
    held = [state.facts(pod.build()) for pod, _ in pods.values()]
    for which in order:
        pod, node = pods[which]
        assert engine.decide(pod.build()).node == node
    assert len(held) == 3

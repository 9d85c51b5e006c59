from __future__ import annotations

from typing import Any, TypeVar

from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject, LabelSelectorRequirement
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.api.workloads import Namespace
from kubesched.simulate.manifests import loads

K = TypeVar("K", bound=KubeObject)
Json = dict[str, Any]


def admitted(kind: type[K], *objects: Json) -> K:
    """The first object of a kind, as it comes out of a list."""
    items = [{"apiVersion": KINDS[obj["kind"]].resource.api_version, **obj} for obj in objects]
    found = loads(str({"apiVersion": "v1", "kind": "List", "items": items})).objects
    return next(obj for obj in found if isinstance(obj, kind))


def pod(spec: Json | None = None, **metadata: Any) -> Json:
    return {"kind": "Pod", "metadata": {"name": "web", **metadata}, "spec": spec or {}}


def priority_class(name: str, value: int, **more: Any) -> Json:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def test_a_pod_without_namespace_or_uid_gets_both() -> None:
    found = admitted(Pod, pod())
    assert (found.namespace, found.uid) == ("default", "default/web")


def test_what_is_limited_but_not_requested_is_requested() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    found = admitted(Pod, pod({"containers": [{"resources": resources}]}))
    assert found.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_a_limit_of_the_whole_pod_is_requested_unless_its_containers_request_something() -> None:
    containers = [{"resources": {"requests": {"cpu": "250m"}}}, {"resources": {"requests": {"cpu": "500m"}}}]
    found = admitted(Pod, pod({"containers": containers, "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}))
    assert found.spec.resources is not None
    assert found.spec.resources.requests == {"cpu": "750m", "memory": "1Gi"}


def test_on_the_network_of_the_host_every_port_is_a_port_of_the_host() -> None:
    spec = {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]}
    assert admitted(Pod, pod(spec)).spec.containers[0].ports[0].host_port == 80


def test_priority_and_preemption_policy_come_from_the_class() -> None:
    gold = priority_class("gold", 500, preemptionPolicy="Never")
    spec = admitted(Pod, pod({"priorityClassName": "gold"}), gold).spec
    assert (spec.priority, spec.preemption_policy) == (500, "Never")


def test_classes_of_the_system_are_known_without_being_given() -> None:
    assert admitted(Pod, pod({"priorityClassName": "system-node-critical"})).priority == 2_000_001_000


def test_a_pod_without_a_class_gets_the_lowest_of_the_global_defaults() -> None:
    classes = [priority_class("a", 20, globalDefault=True), priority_class("b", 10, globalDefault=True)]
    for each in classes:
        each["metadata"]["uid"] = "from-a-server"  # which once allowed several, and refuses a second one today
    assert admitted(Pod, pod(), *classes).priority == 10


def test_a_priority_that_is_given_stands() -> None:
    assert admitted(Pod, pod({"priority": 7, "priorityClassName": "unknown"})).priority == 7


def test_label_keys_to_match_become_part_of_the_selector() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    found = admitted(Pod, pod({"affinity": affinity}, labels={"hash": "x", "tenant": "t"}))
    assert found.spec.affinity is not None
    assert found.spec.affinity.pod_anti_affinity is not None
    selector = found.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution[
        0
    ].label_selector
    assert selector is not None
    assert selector.match_expressions == (
        LabelSelectorRequirement(key="hash", operator="In", values=("x",)),
        LabelSelectorRequirement(key="tenant", operator="NotIn", values=("t",)),
    )


def test_a_node_offers_its_capacity_unless_it_says_otherwise() -> None:
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    assert admitted(Node, node).status.allocatable == {"cpu": "4"}


def test_a_namespace_is_labelled_with_its_name_and_exists_when_something_lives_in_it() -> None:
    assert admitted(Namespace, pod(namespace="shop")).metadata.labels == {"kubernetes.io/metadata.name": "shop"}


def test_a_storage_class_binds_immediately_unless_it_says_otherwise() -> None:
    assert (
        admitted(StorageClass, {"kind": "StorageClass", "metadata": {"name": "s"}}).volume_binding_mode == "Immediate"
    )


def test_a_new_claim_gets_the_default_class_and_a_new_volume_is_available() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {}}
    default = {
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    }
    found = admitted(PersistentVolumeClaim, claim, default)
    assert (found.spec.storage_class_name, found.spec.volume_mode) == ("fast", "Filesystem")
    volume = admitted(PersistentVolume, {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}})
    assert (volume.status.phase, volume.spec.volume_mode) == ("Available", "Filesystem")


def test_a_new_claim_that_names_its_volume_is_bound_to_it() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "v"}}
    assert "pv.kubernetes.io/bind-completed" in admitted(PersistentVolumeClaim, claim).metadata.annotations

"""Manifests are admitted as an API server admits new objects; what a server gave is taken as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.api.pod import Pod
from kubesched.simulate.manifests import ManifestError, Manifests, loads

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def pod(name: str = "web", /, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", **({"uid": uid} if uid else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read(*objects: dict[str, Any], as_list: bool = True) -> Manifests:
    """As kubectl prints several objects, or as a person writes documents."""
    if as_list:
        return loads(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "f")
    return loads("\n---\n".join(map(str, objects)), "f")


def lines(*objects: dict[str, Any]) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read(*objects, as_list=False)
    return caught.value.lines


def only_pod(found: Manifests) -> Pod:
    [found_pod] = [obj for obj in found.objects if isinstance(obj, Pod)]
    return found_pod


# -- unknown fields ---------------------------------------------------------------------------------------------------


def test_misspelt_field_is_a_mistake_with_the_nearest_name() -> None:
    assert lines(pod(nodSelector={"disk": "ssd"})) == [
        'f: document 1 (Pod shop/web): unknown field "spec.nodSelector", did you mean "nodeSelector"?'
    ]


def test_unknown_field_deep_in_an_object_is_named_with_its_path() -> None:
    [line] = lines(pod(containers=[{"name": "a", "resources": {"request": {"cpu": 1}}}]))
    assert line.endswith('unknown field "spec.containers[0].resources.request", did you mean "requests"?')


def test_field_that_is_like_no_other_is_named_alone() -> None:
    [line] = lines({**NODE, "zzz": 1})
    assert line == 'f: document 1 (Node n): unknown field "zzz"'


def test_misspelt_field_in_a_template_is_found() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}], "afinity": {}}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    with pytest.raises(ManifestError, match=r'"spec.template.spec.afinity", did you mean "affinity"'):
        loads(json.dumps({**deployment, "spec": spec}), workloads=True)


# -- every mistake at once --------------------------------------------------------------------------------------------


def test_mistakes_of_every_sort_are_found_at_once() -> None:
    container = {"name": "Main!", "resources": {"requests": {"cpu": "lots"}}}
    found = lines(
        pod(
            nodSelector={},
            priorityClassName="vip",
            containers=[container],
            terminationGracePeriodSeconds="soon",
            tolerations=[{"operator": "Exists", "value": "x"}],
        ),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}},
    )
    assert [line.split(": ", 2)[2].split(":")[0] for line in found] == [
        'unknown field "spec.nodSelector", did you mean "nodeSelector"?',
        "spec.containers[0].resources.requests.cpu",
        "spec.terminationGracePeriodSeconds",
        "spec.containers[0].name",
        "spec.tolerations[0].operator",
        "spec.priorityClassName",
        "spec.taints[0].effect",
    ]


def test_value_that_cannot_be_read_is_no_second_mistake() -> None:
    spread = [{"maxSkew": "one", "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    assert lines(pod(topologySpreadConstraints=spread)) == [
        'f: document 1 (Pod shop/web): spec.topologySpreadConstraints[0].maxSkew: expected an integer, got "one"'
    ]


def test_mistakes_come_in_the_order_of_the_documents() -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "valeu": 3}
    found = lines(pod("first", nodName="x"), classes, pod("third", hostNetwork="yes"))
    assert [line.split(" (")[0] for line in found] == ["f: document 1", "f: document 2", "f: document 3"]


# -- objects of a server ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_list", [True, False])
def test_object_with_a_uid_is_taken_as_the_server_gave_it(as_list: bool) -> None:
    given = pod(uid="1-2", brandNewField=1, priorityClassName="of-another-cluster", containers=[{"name": "Odd Name"}])
    found = only_pod(read(given, as_list=as_list))
    assert (found.uid, found.priority, found.spec.tolerations) == ("1-2", 0, ())


@pytest.mark.parametrize("as_list", [True, False])
def test_types_of_an_object_with_a_uid_are_checked(as_list: bool) -> None:
    with pytest.raises(ManifestError, match=r"requests.cpu: 'lots' is not a quantity"):
        read(pod(uid="1-2", containers=[{"resources": {"requests": {"cpu": "lots"}}}]), as_list=as_list)


def test_pods_of_a_workload_with_a_uid_are_new() -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}}
    metadata = {"name": "d", "namespace": "shop", "uid": "1-2"}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
    found = loads(json.dumps(workload), workloads=True).objects[0]
    assert found.spec.template.spec.containers[0].resources.requests == {"cpu": "1"}  # type: ignore[attr-defined]


def test_pods_that_are_alike_are_admitted_alike_each_with_its_own_metadata() -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}
    first, second = (obj for obj in read(pod("a", **spec), pod("b", **spec)).objects if isinstance(obj, Pod))
    assert (first.spec, first.key, second.key) == (second.spec, "shop/a", "shop/b")
    assert second.spec.containers[0].resources.requests == {"cpu": "1"}
    with pytest.raises(ManifestError, match=r"Pod shop/B\): metadata.name: Invalid value"):
        read(pod("a", **spec), pod("B", **spec))


# -- unknown kinds ----------------------------------------------------------------------------------------------------


def test_unknown_kind_is_a_warning_with_the_nearest_kind() -> None:
    found = read(NODE, {"apiVersion": "v1", "kind": "Pdo", "metadata": {"name": "p"}}, as_list=False)
    assert found.warnings == ('f: document 2: unknown kind "Pdo" in v1, did you mean "Pod"?',)
    assert len(found.objects) == 1


def test_unknown_kind_is_an_error_when_nothing_else_was_there() -> None:
    assert lines({"apiVersion": "apps/v1", "kind": "Deploymnt"}) == [
        'f: document 1: unknown kind "Deploymnt" in apps/v1, did you mean "Deployment"?'
    ]


def test_objects_of_one_unknown_kind_are_one_warning() -> None:
    certificate = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate"}
    found = read(NODE, certificate, certificate, as_list=False)
    assert found.warnings == ('f: document 2 and 1 more: unknown kind "Certificate" in cert-manager.io/v1, left out',)
    assert found.skipped == {"Certificate": 2}


def test_kinds_that_kubernetes_has_are_no_warning() -> None:
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}}
    found = read(NODE, ingress)
    assert (found.warnings, found.skipped) == ((), {"Ingress": 1})


# -- where offline rules are laxer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sketch",
    [
        pod(),
        pod(containers=[{"resources": {"requests": {"cpu": 1}}}]),
        pod(containers=[{"ports": [{"hostPort": 80}]}]),
        pod(nodeName="n", priority=7, priorityClassName="gone"),
        {**pod(nodeName="n"), "status": {"phase": "Running", "startTime": "2026-01-31T12:00:00Z"}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}},
    ],
)
def test_sketch_leaves_out_what_scheduling_does_not_read(sketch: dict[str, Any]) -> None:
    assert read(sketch).objects

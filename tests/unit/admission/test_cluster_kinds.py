"""Everything that is neither a pod nor makes pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.unit.admission.cluster import Cluster, refused
from tests.unit.admission.examples import example

from kubesched.admission import admit_create, admit_update
from kubesched.api import kinds
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object, Resource

EMPTY = Cluster()


def asked(resource: Resource, **fields: Any) -> Object:
    """The example of a kind with some fields of its spec replaced, or of itself if it has none."""
    obj = copy.deepcopy(example(resource))
    obj.get("spec", obj).update(fields)
    return obj


def created(resource: Resource, cluster: Cluster = EMPTY, **fields: Any) -> Object:
    return admit_create(resource, asked(resource, **fields), cluster)


def updated(resource: Resource, old: Object, **fields: Any) -> Object:
    new = copy.deepcopy(old)
    new.get("spec", new).update(fields)
    return admit_update(resource, old, new, "", EMPTY)


# -- nodes and namespaces ---------------------------------------------------------------------------------------------


def test_node_keeps_the_status_it_registers_with() -> None:
    assert created(kinds.NODES)["status"]["allocatable"] == {"cpu": "4", "pods": 110}


def test_taints_are_unique_by_key_and_effect() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    [(field, _)] = refused(lambda: created(kinds.NODES, taints=[taint, {**taint, "value": "b"}]))
    assert field == "spec.taints[1]"


def test_unknown_taint_effect_is_refused() -> None:
    assert refused(lambda: created(kinds.NODES, taints=[{"key": "a", "effect": "Explode"}])) == [
        (
            "spec.taints[0].effect",
            'Unsupported value: "Explode": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        )
    ]


def test_namespace_is_labelled_with_its_name_and_held_until_it_is_empty() -> None:
    namespace = created(kinds.NAMESPACES)
    assert namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == "web"
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert admit_update(kinds.NAMESPACES, namespace, {**namespace, "spec": {}}, "", EMPTY) == namespace
    assert admit_update(kinds.NAMESPACES, namespace, {**namespace, "spec": {}}, "finalize", EMPTY)["spec"] == {}


def test_namespace_names_have_no_dots() -> None:
    dotted = asked(kinds.NAMESPACES)
    dotted["metadata"]["name"] = "a.b"
    assert refused(lambda: admit_create(kinds.NAMESPACES, dotted, EMPTY)) == [
        ("metadata.name", 'Invalid value: "a.b": must not contain dots')
    ]


# -- services ---------------------------------------------------------------------------------------------------------


def test_every_service_has_an_address_and_node_port_of_its_own() -> None:
    one = created(kinds.SERVICES)
    other = created(kinds.SERVICES, Cluster().having(kinds.SERVICES, one))
    assert one["spec"]["clusterIPs"] == [one["spec"]["clusterIP"]]
    assert one["spec"]["clusterIP"] != other["spec"]["clusterIP"]
    assert one["spec"]["ports"][0]["nodePort"] != other["spec"]["ports"][0]["nodePort"]


def test_service_keeps_its_address() -> None:
    old = created(kinds.SERVICES)
    assert updated(kinds.SERVICES, old, clusterIP="", clusterIPs=None)["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert refused(lambda: updated(kinds.SERVICES, old, clusterIP="10.96.1.1")) == [
        ("spec.clusterIPs[0]", 'Invalid value: ["10.96.1.1"]: may not change once set')
    ]


def test_headless_service_has_no_address() -> None:
    assert created(kinds.SERVICES, type="ClusterIP", clusterIP="None")["spec"]["clusterIPs"] == ["None"]


def test_service_needs_ports() -> None:
    assert refused(lambda: created(kinds.SERVICES, ports=[])) == [("spec.ports", "Required value")]


# -- storage ----------------------------------------------------------------------------------------------------------


def storage_class(name: str, created_at: str, *, default: bool = True) -> Object:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
    return {"metadata": {"name": name, "creationTimestamp": created_at, "annotations": annotations}}


def test_claim_without_a_class_gets_the_newest_default_class() -> None:
    cluster = Cluster().having(
        kinds.STORAGE_CLASSES,
        storage_class("old", "2025-01-01T00:00:00Z"),
        storage_class("new", "2026-01-01T00:00:00Z"),
        storage_class("other", "2026-02-01T00:00:00Z", default=False),
    )
    assert created(kinds.PERSISTENT_VOLUME_CLAIMS, cluster)["spec"]["storageClassName"] == "new"
    assert created(kinds.PERSISTENT_VOLUME_CLAIMS, cluster, storageClassName="")["spec"]["storageClassName"] == ""
    assert "storageClassName" not in created(kinds.PERSISTENT_VOLUME_CLAIMS)["spec"]


def test_new_claim_is_pending() -> None:
    claim = created(kinds.PERSISTENT_VOLUME_CLAIMS)
    assert (claim["spec"]["volumeMode"], claim["status"]) == ("Filesystem", {"phase": "Pending"})


def test_spec_of_a_claim_is_immutable_but_for_its_volume() -> None:
    old = created(kinds.PERSISTENT_VOLUME_CLAIMS)
    assert updated(kinds.PERSISTENT_VOLUME_CLAIMS, old, volumeName="v")["spec"]["volumeName"] == "v"
    [(field, message)] = refused(lambda: updated(kinds.PERSISTENT_VOLUME_CLAIMS, old, accessModes=["ReadWriteMany"]))
    assert field == "spec"
    assert message.startswith("Forbidden: spec is immutable after creation except resources.requests")


def test_bound_claim_may_grow_where_its_class_allows_that_but_not_shrink() -> None:
    claim = {**created(kinds.PERSISTENT_VOLUME_CLAIMS), "status": {"phase": "Bound"}}
    old = {**claim, "spec": {**claim["spec"], "storageClassName": "fast"}}
    wanted = ({"resources": {"requests": {"storage": size}}} for size in ("2Gi", "1Mi"))
    bigger, smaller = ({**old, "spec": {**old["spec"], **resources}} for resources in wanted)
    fixed, growing = (
        Cluster().having(kinds.STORAGE_CLASSES, {"metadata": {"name": "fast"}, "allowVolumeExpansion": allowed})
        for allowed in (False, True)
    )
    assert admit_update(kinds.PERSISTENT_VOLUME_CLAIMS, old, bigger, "", growing)["spec"] == bigger["spec"]
    with pytest.raises(ApiError, match="the storageclass that provisions the pvc must support resize"):
        admit_update(kinds.PERSISTENT_VOLUME_CLAIMS, old, bigger, "", fixed)
    assert refused(lambda: admit_update(kinds.PERSISTENT_VOLUME_CLAIMS, old, smaller, "", growing)) == [
        ("spec.resources.requests.storage", "Forbidden: field can not be less than previous value")
    ]


def test_volume_is_retained_unless_said_otherwise_and_its_source_stays() -> None:
    old = created(kinds.PERSISTENT_VOLUMES)
    assert old["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert updated(kinds.PERSISTENT_VOLUMES, old, claimRef={"name": "c"})["spec"]["claimRef"] == {"name": "c"}
    [(field, _)] = refused(lambda: updated(kinds.PERSISTENT_VOLUMES, old, csi={"driver": "other"}))
    assert field == "spec.persistentvolumesource"


def test_storage_class_binds_at_once_and_is_immutable() -> None:
    old = created(kinds.STORAGE_CLASSES)
    assert (old["volumeBindingMode"], old["reclaimPolicy"]) == ("Immediate", "Delete")
    [(field, message)] = refused(lambda: updated(kinds.STORAGE_CLASSES, old, provisioner="other.example.com"))
    assert (field, message) == ("provisioner", 'Invalid value: "other.example.com": field is immutable')


def test_csi_driver_may_change_how_much_it_attaches() -> None:
    old = created(kinds.CSI_NODES)
    driver = old["spec"]["drivers"][0]
    assert updated(kinds.CSI_NODES, old, drivers=[{**driver, "allocatable": {"count": 9}}])
    assert refused(lambda: updated(kinds.CSI_NODES, old, drivers=[{**driver, "nodeID": "m"}]))[0][0] == "spec.drivers"


def test_csi_driver_that_lost_its_name_is_refused() -> None:
    old = created(kinds.CSI_NODES)
    nameless = {"nodeID": "n", "allocatable": {"count": 3}, "topologyKeys": []}
    [(field, _)] = refused(lambda: updated(kinds.CSI_NODES, old, drivers=[nameless]))
    assert field == "spec.drivers[0].name"


# -- policy -----------------------------------------------------------------------------------------------------------


def test_priority_classes_of_users_stay_below_the_systems() -> None:
    assert refused(lambda: created(kinds.PRIORITY_CLASSES, value=1_000_000_001)) == [
        ("value", "Forbidden: maximum allowed value of a user defined priority is 1000000000")
    ]


def test_names_of_system_classes_are_reserved() -> None:
    mine = asked(kinds.PRIORITY_CLASSES)
    mine["metadata"]["name"] = "system-mine"
    [(field, message)] = refused(lambda: admit_create(kinds.PRIORITY_CLASSES, mine, EMPTY))
    assert field == "metadata.name"
    assert message == (
        "Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
        "error: system-mine is not a known system priority class"
    )


def test_value_of_a_priority_class_is_immutable() -> None:
    old = created(kinds.PRIORITY_CLASSES)
    assert refused(lambda: updated(kinds.PRIORITY_CLASSES, old, value=7)) == [
        ("value", "Forbidden: may not be changed in an update.")
    ]


def test_only_one_priority_class_is_the_default() -> None:
    other = {"metadata": {"name": "first"}, "value": 1, "globalDefault": True}
    with pytest.raises(
        ApiError, match=r"PriorityClass first is already marked as default\. Only one default can exist"
    ):
        created(kinds.PRIORITY_CLASSES, Cluster().having(kinds.PRIORITY_CLASSES, other))


def test_budget_says_either_how_many_must_stay_or_how_many_may_go() -> None:
    [(field, message)] = refused(lambda: created(kinds.POD_DISRUPTION_BUDGETS, maxUnavailable=1))
    assert field == "spec"
    assert message.endswith("minAvailable and maxUnavailable cannot be both set")


# -- configuration ----------------------------------------------------------------------------------------------------


def test_plain_text_of_a_secret_is_encoded() -> None:
    secret = created(kinds.SECRETS)
    assert secret["data"] == {"user": "aGk=", "password": "c2VjcmV0"}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


def test_immutable_config_map_stays_as_it_is() -> None:
    old = created(kinds.CONFIG_MAPS, immutable=True)
    assert refused(lambda: updated(kinds.CONFIG_MAPS, old, data={})) == [
        ("data", "Forbidden: field is immutable when `immutable` is set")
    ]


def test_key_of_a_config_map_is_in_data_or_in_binary_data() -> None:
    assert refused(lambda: created(kinds.CONFIG_MAPS, data={"key": "a"}, binaryData={"key": "YQ=="})) == [
        ("data[key]", 'Invalid value: "key": duplicate of key present in binaryData')
    ]


# -- devices ----------------------------------------------------------------------------------------------------------


def test_request_is_for_one_device_unless_said_otherwise() -> None:
    requests = created(kinds.RESOURCE_CLAIMS)["spec"]["devices"]["requests"]
    assert (requests[0]["exactly"]["allocationMode"], requests[0]["exactly"]["count"]) == ("ExactCount", 1)
    assert requests[1]["firstAvailable"][0]["count"] == 1


def test_spec_of_a_resource_claim_is_immutable() -> None:
    [(field, message)] = refused(
        lambda: updated(kinds.RESOURCE_CLAIMS, created(kinds.RESOURCE_CLAIMS), devices={"requests": []})
    )
    assert field == "spec"
    assert message.endswith("field is immutable")


def test_claim_is_reserved_only_while_it_is_allocated() -> None:
    old = created(kinds.RESOURCE_CLAIMS)
    reserved = [{"resource": "pods", "name": "web", "uid": "u"}]
    allocated = {**old, "status": {"allocation": {"devices": {}}, "reservedFor": reserved}}
    assert admit_update(kinds.RESOURCE_CLAIMS, old, allocated, "status", EMPTY)["status"] == allocated["status"]
    not_allocated = {**old, "status": {"reservedFor": reserved}}
    assert refused(lambda: admit_update(kinds.RESOURCE_CLAIMS, old, not_allocated, "status", EMPTY)) == [
        ("status.reservedFor", "Forbidden: may not be specified when `allocated` is not set")
    ]


def test_slice_is_for_one_kind_of_place() -> None:
    [(field, message)] = refused(lambda: created(kinds.RESOURCE_SLICES, nodeName=None))
    assert field == "spec"
    assert message.startswith("Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`,")


# -- definitions ------------------------------------------------------------------------------------------------------


def test_names_of_a_definition_follow_from_its_kind() -> None:
    names = created(kinds.CUSTOM_RESOURCE_DEFINITIONS)["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("rocket", "RocketList")


def test_definition_is_named_after_what_it_defines() -> None:
    wrong = asked(kinds.CUSTOM_RESOURCE_DEFINITIONS, group="other.com")
    assert refused(lambda: admit_create(kinds.CUSTOM_RESOURCE_DEFINITIONS, wrong, EMPTY)) == [
        (
            "metadata.name",
            'Invalid value: "rockets.example.com": must be spec.names.plural+"."+spec.group',
        )
    ]


def test_exactly_one_version_is_stored() -> None:
    versions = copy.deepcopy(example(kinds.CUSTOM_RESOURCE_DEFINITIONS)["spec"]["versions"])
    versions.append({**versions[0], "name": "v2"})
    [(field, message)] = refused(lambda: created(kinds.CUSTOM_RESOURCE_DEFINITIONS, versions=versions))
    assert field == "spec.versions"
    assert message.endswith("must have exactly one version marked as storage version")


def test_column_of_a_definition_has_a_type() -> None:
    versions = copy.deepcopy(example(kinds.CUSTOM_RESOURCE_DEFINITIONS)["spec"]["versions"])
    del versions[0]["additionalPrinterColumns"][0]["type"]
    assert refused(lambda: created(kinds.CUSTOM_RESOURCE_DEFINITIONS, versions=versions)) == [
        (
            "spec.versions[0].additionalPrinterColumns[0].type",
            "Required value: must be one of boolean,date,integer,number,string",
        )
    ]


def test_kind_of_a_definition_may_have_mixed_case_and_no_spaces() -> None:
    names = {"plural": "rockets", "kind": "Big Rocket", "listKind": "RocketList", "singular": "rocket"}
    [(field, message)] = refused(lambda: created(kinds.CUSTOM_RESOURCE_DEFINITIONS, names=names))
    assert field == "spec.names.kind"
    assert message.startswith(
        'Invalid value: "Big Rocket": may have mixed case, but should otherwise match: a DNS-1035'
    )

"""Claims that are made for one pod, and volumes for claims: the best existing one, or one that is provisioned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kubesched.api.kinds import PODS, Object
from kubesched.api.meta import LabelSelector
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.api.selectors import compile_selector
from kubesched.api.well_known import STORAGE_CLASS
from kubesched.controllers.pod_templates import owner_reference

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""On a ResourceClaim: which entry of its pod's `spec.resourceClaims` it was made for."""


def ephemeral_claim_name(pod: Object, volume: Object) -> str:
    return f"{pod['metadata']['name']}-{volume['name']}"


def ephemeral_claim(pod: Object, volume: Object) -> Object:
    """The PersistentVolumeClaim of an ephemeral volume; it goes with the pod."""
    template = volume["ephemeral"]["volumeClaimTemplate"]
    metadata = {**(template.get("metadata") or {}), "name": ephemeral_claim_name(pod, volume)}
    metadata["ownerReferences"] = [owner_reference(PODS, pod)]
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def resource_claim(pod: Object, entry: Object, template: Object) -> Object:
    """The ResourceClaim that a template stands for, for an entry of the pod's `spec.resourceClaims`."""
    template_metadata = template["spec"].get("metadata") or {}
    metadata = {
        "generateName": f"{pod['metadata']['name']}-{entry['name']}-",
        "labels": template_metadata.get("labels") or {},
        "annotations": {**(template_metadata.get("annotations") or {}), POD_CLAIM_NAME: entry["name"]},
        "ownerReferences": [owner_reference(PODS, pod)],
    }
    return {"metadata": metadata, "spec": template["spec"].get("spec") or {}}


_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_FILESYSTEM = "Filesystem"


def class_of(obj: Object) -> str:
    """The storage class of a claim or volume; empty if it has none."""
    annotated = (obj["metadata"].get("annotations") or {}).get(STORAGE_CLASS)
    return str(annotated if annotated is not None else obj["spec"].get("storageClassName") or "")


def request_of(claim: Object) -> Quantity:
    return parse_quantity(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0))


def is_claimed_by(volume: Object, claim: Object) -> bool:
    """Whether the volume's claimRef names this claim: by namespace and name, and by uid if it has one."""
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (metadata["namespace"], metadata["name"]):
        return False
    return reference.get("uid") in (None, "", metadata["uid"])


def best_volume(claim: Object, volumes: Iterable[Object]) -> Object | None:
    """The smallest free volume that suits, the first by name among equals."""
    suitable = [volume for volume in volumes if "claimRef" not in volume["spec"] and _suits(volume, claim)]
    return min(suitable, key=lambda volume: (_capacity(volume).value(), volume["metadata"]["name"]), default=None)


def _capacity(volume: Object) -> Quantity:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", 0))


def _suits(volume: Object, claim: Object) -> bool:
    claim_spec, volume_spec = claim["spec"], volume["spec"]
    if claim_spec.get("volumeMode", _FILESYSTEM) != volume_spec.get("volumeMode", _FILESYSTEM):
        return False
    if class_of(volume) != class_of(claim):
        return False
    if not set(claim_spec.get("accessModes") or ()) <= set(volume_spec.get("accessModes") or ()):
        return False
    if request_of(claim).exceeds(_capacity(volume)):
        return False
    selector = claim_spec.get("selector")
    return selector is None or _selects(selector, volume["metadata"].get("labels") or {})


def _selects(selector: Object, labels: dict[str, str]) -> bool:
    return compile_selector(msgspec.convert(selector, LabelSelector)).matches(labels)


def provisioned_volume(
    claim: Object, storage_class: Object, node: Object | None, driver: Object | None
) -> Object | None:
    """The volume for a claim; None if the chosen node is not one where the class makes volumes.

    `driver` is the CSINode of that node: it says which labels of the node are its topology.
    """
    terms = _topology(storage_class, node, driver)
    if terms is None:
        return None
    metadata, provisioner = claim["metadata"], storage_class.get("provisioner", "")
    name = f"pvc-{metadata['uid']}"
    spec: dict[str, Any] = {
        "accessModes": claim["spec"].get("accessModes") or [],
        "capacity": dict((claim["spec"].get("resources") or {}).get("requests") or {}),
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "csi": {"driver": provisioner, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
        "storageClassName": class_of(claim),
        "volumeMode": claim["spec"].get("volumeMode", _FILESYSTEM),
    }
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": name, "annotations": {_PROVISIONED_BY: provisioner}}, "spec": spec}


def _topology(storage_class: Object, node: Object | None, driver: Object | None) -> list[Object] | None:
    """Node selector terms for where the volume can be used: none means anywhere, None means nowhere."""
    allowed = storage_class.get("allowedTopologies") or []
    if node is None:
        return [{"matchExpressions": _expressions(term)} for term in allowed if _expressions(term)]
    labels = node["metadata"].get("labels") or {}
    if allowed:
        fitting = [term for term in allowed if _holds(term, labels)]
        if not fitting:
            return None
        keys = [expression["key"] for expression in fitting[0].get("matchLabelExpressions") or ()]
    else:
        keys = _topology_keys(storage_class.get("provisioner", ""), driver)
    terms = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
    return [{"matchExpressions": terms}] if terms else []


def _expressions(term: Object) -> list[Object]:
    return [{"key": e["key"], "operator": "In", "values": e["values"]} for e in term.get("matchLabelExpressions") or ()]


def _holds(term: Object, labels: dict[str, str]) -> bool:
    return all(labels.get(e["key"]) in e["values"] for e in term.get("matchLabelExpressions") or ())


def _topology_keys(provisioner: str, driver: Object | None) -> list[str]:
    for entry in ((driver or {}).get("spec") or {}).get("drivers") or ():
        if entry["name"] == provisioner:
            return list(entry.get("topologyKeys") or ())
    return []

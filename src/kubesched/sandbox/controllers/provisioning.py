"""Volumes made to order: hollow ones, for any class with a provisioner, where the class and the node allow."""

from __future__ import annotations

from typing import Any

from kubesched.api.kinds import Object
from kubesched.sandbox.controllers.volume_matching import class_of

_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def provisioned_volume(
    claim: Object, storage_class: Object, node: Object | None, driver: Object | None
) -> Object | None:
    """The volume for a claim; None if the chosen node is not one where the class makes volumes.

    `driver` is the CSINode of that node: it says which labels of the node are its topology.
    """
    terms = _topology(storage_class, node, driver)
    if terms is None:
        return None
    metadata, provisioner = claim["metadata"], storage_class["provisioner"]
    name = f"pvc-{metadata['uid']}"
    spec: dict[str, Any] = {
        "accessModes": claim["spec"]["accessModes"],
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
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
        "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
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
        keys = [each["key"] for each in fitting[0].get("matchLabelExpressions") or ()]
    else:
        keys = _topology_keys(storage_class["provisioner"], driver)
    found = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
    return [{"matchExpressions": found}] if found else []


def _expressions(term: Object) -> list[Object]:
    return [
        {"key": each["key"], "operator": "In", "values": each["values"]}
        for each in term.get("matchLabelExpressions") or ()
    ]


def _holds(term: Object, labels: dict[str, str]) -> bool:
    return all(labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or ())


def _topology_keys(provisioner: str, driver: Object | None) -> list[str]:
    for each in ((driver or {}).get("spec") or {}).get("drivers") or ():
        if each["name"] == provisioner:
            return list(each.get("topologyKeys") or ())
    return []

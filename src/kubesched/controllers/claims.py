"""Claims that are made for one pod: of its ephemeral volumes, and from ResourceClaimTemplates."""

from __future__ import annotations

from kubesched.api.kinds import PODS, Object
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
    given = template["spec"].get("metadata") or {}
    metadata = {
        "generateName": f"{pod['metadata']['name']}-{entry['name']}-",
        "labels": given.get("labels") or {},
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: entry["name"]},
        "ownerReferences": [owner_reference(PODS, pod)],
    }
    return {"metadata": metadata, "spec": template["spec"].get("spec") or {}}

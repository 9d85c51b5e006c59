"""StatefulSets: the ordinals they want, and the pod and the claims of each."""

from __future__ import annotations

from kubesched.api.kinds import STATEFUL_SETS, Object
from kubesched.controllers.pod_templates import REVISION_HASH, owner_reference, pod_from

_POD_NAME, _POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


def ordinals_of(stateful_set: Object) -> range:
    spec = stateful_set["spec"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    replicas = spec.get("replicas")
    return range(first, first + (1 if replicas is None else replicas))


def stateful_pod(stateful_set: Object, ordinal: int, template: Object, revision: str) -> Object:
    """The pod of an ordinal, made from a template of the set's history."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = pod_from(template, name=name)
    own = {REVISION_HASH: revision, _POD_NAME: name, _POD_INDEX: str(ordinal)}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **own}
    spec = pod["spec"]
    claims = {
        claim["metadata"]["name"]: claim_name(stateful_set, claim, ordinal) for claim in claim_templates(stateful_set)
    }
    if claims:
        volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = [*volumes, *(each for each in spec.get("volumes") or () if each["name"] not in claims)]
    spec["hostname"] = name
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    return pod


def claim_templates(stateful_set: Object) -> tuple[Object, ...]:
    return tuple(stateful_set["spec"].get("volumeClaimTemplates") or ())


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claim_of(stateful_set: Object, template: Object, ordinal: int) -> Object:
    """The claim of an ordinal: it goes with the set only if the set's retention policy says so."""
    given, spec = template.get("metadata") or {}, stateful_set["spec"]
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    metadata = {
        "name": claim_name(stateful_set, template, ordinal),
        "labels": {**(given.get("labels") or {}), **selector},
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    if retention.get("whenDeleted") == "Delete":
        metadata["ownerReferences"] = [owner_reference(STATEFUL_SETS, stateful_set, controller=False)]
    return {"metadata": metadata, "spec": template["spec"]}

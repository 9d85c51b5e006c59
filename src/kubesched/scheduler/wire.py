"""What the scheduler writes, in the shape in which the Kubernetes API takes it."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.api.pod import Pod, PodCondition
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim

Body = dict[str, Any]


def binding(pod: Pod, node_name: str) -> Body:
    """The Binding of this very pod: one that was made anew under its name has another uid, and is refused."""
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"kind": "Node", "name": node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def status_patch(pod: Pod, condition: PodCondition | None, nominated_node_name: str | None, now: str) -> Body:
    """A strategic merge patch of a pod's status. `now` is when a condition changed, if it did.

    A nomination that is None stays as it is, and an empty one is taken away.
    """
    status: Body = {}
    if condition is not None:
        known = next((each for each in pod.status.conditions if each.type == condition.type), None)
        told = {field: value for field, value in msgspec.structs.asdict(condition).items() if value}
        if known is None or known.status != condition.status:
            told["lastTransitionTime"] = now
        if pod.metadata.generation:  # which of its specs was looked at
            told["observedGeneration"] = pod.metadata.generation
        status["conditions"] = [told]
    if nominated_node_name is not None:
        status["nominatedNodeName"] = nominated_node_name or None
    return {"metadata": {"uid": pod.uid}, "status": status}


def deletion(pod: Pod) -> Body:
    """The options for deleting this very pod."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}


def volume_patch(volume: PersistentVolume) -> Body:
    """A merge patch that gives a volume to its claim, unless somebody changed the volume meanwhile."""
    reference = volume.spec.claim_ref
    assert reference is not None
    claim = {field: value for field, value in msgspec.structs.asdict(reference).items() if value}
    metadata = {"annotations": volume.metadata.annotations, **_as_it_was(volume)}
    return {"metadata": metadata, "spec": {"claimRef": {"apiVersion": "v1", **claim}}}


def claim_patch(claim: PersistentVolumeClaim) -> Body:
    """A merge patch that asks for a claim's volume to be made for a node, unless the claim changed meanwhile."""
    return {"metadata": {"annotations": claim.metadata.annotations, **_as_it_was(claim)}}


def _as_it_was(obj: PersistentVolume | PersistentVolumeClaim) -> Body:
    return {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}


def says_the_same(written: Body, stored: Body) -> bool:
    """Whether a claim was written, by what is stored: its status, and who keeps it from being deleted."""
    mine, theirs = ([body.get("status"), body["metadata"].get("finalizers")] for body in (written, stored))
    return bool(_without_empty(mine) == _without_empty(theirs))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: kept for key, inner in value.items() if (kept := _without_empty(inner)) not in (None, {}, [], "")}
    return [_without_empty(item) for item in value] if isinstance(value, list | tuple) else value

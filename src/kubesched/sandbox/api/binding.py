"""Assigning a pod to a node: what must hold, and the pod that comes of it."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import PODS, Object
from kubesched.api.well_known import REGION, ZONE
from kubesched.sandbox.api.reading import check_storage

_TOPOLOGY = (ZONE, REGION)


def target_of(name: str, binding: Object) -> str:
    """The node that a Binding names."""
    metadata = binding.get("metadata")
    given = metadata.get("name") if isinstance(metadata, dict) else None
    if given is not None and given != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    if target.get("kind", "Node") not in ("", "Node"):
        raise _unprocessable(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node"')
    node = target.get("name")
    if not isinstance(node, str) or not node:
        raise _unprocessable("target.name: Required value")
    return node


def _unprocessable(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


def check(pod: Object, binding: Object) -> None:
    """Refuse to bind a pod that is bound, going, gated, or not the one that was meant."""
    name = pod["metadata"]["name"]
    metadata = binding.get("metadata")
    check_storage(PODS, pod, metadata if isinstance(metadata, dict) else {})
    if pod["metadata"].get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def bound(pod: Object, binding: Object, node: Object | None, target: str, now: str) -> Object:
    """The pod on its node, with what the Binding and the node's topology add to it."""
    given = binding.get("metadata")
    given = given if isinstance(given, dict) else {}
    metadata = dict(pod["metadata"])
    labels = {**_texts(given.get("labels")), **_topology(node)}
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    annotations = _texts(given.get("annotations"))
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = with_condition(status.get("conditions") or [], scheduled, now)
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": target}, "status": status}


def with_condition(conditions: list[Object], condition: Object, now: str) -> list[Object]:
    """The conditions with this one set. The time of transition changes with the status only."""
    kind = condition["type"]
    old = next((entry for entry in conditions if entry.get("type") == kind), None)
    same = old is not None and old.get("status") == condition["status"]
    since = old["lastTransitionTime"] if old is not None and same and old.get("lastTransitionTime") else now
    new = {"lastProbeTime": None, **condition, "lastTransitionTime": since}
    if old is None:
        return [*conditions, new]
    return [new if entry is old else entry for entry in conditions]


def _topology(node: Object | None) -> dict[str, str]:
    labels = (node["metadata"].get("labels") if node is not None else None) or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _conflict(name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})

"""Subresources with a meaning of their own: the binding and the eviction of a pod, and the scale of a workload."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubesched.admission.reading import value_at
from kubesched.admission.selectors import matches
from kubesched.api.api_error import ApiError, bad_request, forbidden, invalid
from kubesched.api.kinds import POD_DISRUPTION_BUDGETS, PODS, REPLICATION_CONTROLLERS, Object, Resource
from kubesched.api.schema import Mistake
from kubesched.api.well_known import REGION, ZONE
from kubesched_sandbox.api.conditions import condition, condition_of, is_ready, with_condition
from kubesched_sandbox.api.reading import check_storage

_TOPOLOGY = (ZONE, REGION)

# -- binding ----------------------------------------------------------------------------------------------------------


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


def check_binding(pod: Object, binding: Object) -> None:
    """Refuse to bind a pod that is bound, being deleted or gated, or that has another uid than the Binding names."""
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


def with_node(pod: Object, binding: Object, node: Object | None, target: str, now: str) -> Object:
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


def _topology(node: Object | None) -> dict[str, str]:
    labels = (node["metadata"].get("labels") if node is not None else None) or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _conflict(name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


# -- eviction ---------------------------------------------------------------------------------------------------------

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED = 2000

EVICTED = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
"""The condition of a pod that is evicted."""


def needs_no_budget(pod: Object) -> bool:
    """Whether no budget applies to an eviction of the pod: it does not run, or is being deleted already."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def budget_of(pod: Object, budgets: list[Object]) -> Object | None:
    """The budget that covers a pod; more than one is an error."""
    labels = pod["metadata"].get("labels") or {}
    selectors = ((budget, budget.get("spec", {}).get("selector")) for budget in budgets)
    covering = [budget for budget, selector in selectors if selector is not None and matches(selector, labels)]
    if len(covering) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "InternalError", message)
    return covering[0] if covering else None


def may_go_unhealthy(pod: Object, budget: Object) -> bool:
    """Whether an unready pod may be evicted without charging its budget (`unhealthyPodEvictionPolicy`)."""
    if is_ready(pod):
        return False
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def charge_budget(budget: Object, pod_name: str, now: str) -> Object:
    """The budget after one more disruption; raises when it allows none."""
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, why, "too many pending evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _refusal(_why_not(name, budget))
    changed = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod_name: now}}
    return {**budget, "status": changed}


def _why_not(name: str, budget: Object) -> str:
    status, allowed = budget.get("status") or {}, condition_of(budget, "DisruptionAllowed") or {}
    message = allowed.get("message") if allowed.get("status") == "False" else None
    if message and allowed.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({allowed['reason']}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refusal(why: str, retry_after: int | None = None) -> ApiError:
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return ApiError(429, "TooManyRequests", _REFUSED, details, retry_after)


def _forbidden(name: str, why: str, cause: str) -> ApiError:
    error = forbidden(POD_DISRUPTION_BUDGETS, name, why)
    message = f"The disruption budget {name} does not allow evicting pods currently: {cause}"
    error.details["causes"] = [{"reason": "DisruptionBudget", "message": message}]
    return error


# -- scale ------------------------------------------------------------------------------------------------------------

_TEXT_OPERATORS = {"In": "in", "NotIn": "notin"}


class ScalePaths(NamedTuple):
    """Where a kind keeps what a Scale shows. Without a path for it, the selector is that of the built-in workloads."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] | None = None


WORKLOAD = ScalePaths()


def custom_paths(version: Object) -> ScalePaths:
    """As one version of a CustomResourceDefinition says."""
    scale = (version.get("subresources") or {}).get("scale") or {}
    return ScalePaths(
        _steps(scale.get("specReplicasPath", ".spec.replicas")),
        _steps(scale.get("statusReplicasPath", ".status.replicas")),
        _steps(scale.get("labelSelectorPath") or ""),
    )


def scale_of(resource: Resource, obj: Object, paths: ScalePaths = WORKLOAD) -> Object:
    """The Scale of one object."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status = {"replicas": value_at(obj, *paths.status) or 0}
    selector = _selector(resource, obj) if paths.selector is None else paths.selector and value_at(obj, *paths.selector)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": value_at(obj, *paths.spec) or 0},
        "status": status,
    }


def with_replicas(resource: Resource, obj: Object, scale: Object, paths: ScalePaths = WORKLOAD) -> Object:
    """The object with the replicas that a Scale asks for."""
    spec = scale.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else 0
    name = obj["metadata"]["name"]
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        cause = Mistake("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
        raise invalid(resource, name, [cause])
    return _written(obj, paths.spec, replicas)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.split(".") if step)


def _written(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    if not path:
        return obj
    if len(path) == 1:
        return {**obj, path[0]: value}
    inner = obj.get(path[0])
    return {**obj, path[0]: _written(inner if isinstance(inner, dict) else {}, path[1:], value)}


def _selector(resource: Resource, obj: Object) -> str:
    selector = obj.get("spec", {}).get("selector") or {}
    if resource is REPLICATION_CONTROLLERS:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    exact = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*exact, *(_expression(entry) for entry in selector.get("matchExpressions") or ())])


def _expression(entry: Object) -> str:
    match entry["operator"]:
        case "Exists":
            return str(entry["key"])
        case "DoesNotExist":
            return f"!{entry['key']}"
        case operator:
            return f"{entry['key']} {_TEXT_OPERATORS[operator]} ({','.join(sorted(entry.get('values') or ()))})"

"""Evicting a pod: a deletion that asks the pod's disruption budget first."""

from __future__ import annotations

from kubesched.admission.selectors import matches
from kubesched.api.api_error import ApiError, forbidden
from kubesched.api.kinds import POD_DISRUPTION_BUDGETS, Object

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED = 2000

EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
"""The condition of a pod that is evicted."""


def needs_no_budget(pod: Object) -> bool:
    """Whether a pod may go whatever its budget says: it does not run, or is going already."""
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
    """Whether a pod that is not ready may go without being counted."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions):
        return False
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def charged(budget: Object, pod_name: str, now: str) -> Object:
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
        raise _refusal(_why_not(name, status))
    changed = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod_name: now}}
    return {**budget, "status": changed}


def _why_not(name: str, status: Object) -> str:
    conditions = status.get("conditions") or []
    condition: Object = next((entry for entry in conditions if entry.get("type") == "DisruptionAllowed"), {})
    message = condition.get("message") if condition.get("status") == "False" else None
    if message and condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({condition['reason']}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refusal(why: str, retry_after: int | None = None) -> ApiError:
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return ApiError(429, "TooManyRequests", _REFUSED, details, retry_after)


def _forbidden(name: str, why: str, cause: str) -> ApiError:
    error = forbidden(POD_DISRUPTION_BUDGETS, name, why)
    message = f"The disruption budget {name} does not allow evicting pods currently: {cause}"
    error.details["causes"] = [{"reason": "DisruptionBudget", "message": message}]
    return error

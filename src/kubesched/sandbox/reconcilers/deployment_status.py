"""What a Deployment says of itself: counts, whether it is available, and how its rollout goes."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.controllers import rollout
from kubesched.sandbox.api.stamps import seconds_of
from kubesched.sandbox.api.subresources import with_condition
from kubesched.sandbox.reconcilers.conditions import condition, condition_of, without_condition

_FOREVER = 2**31 - 1


class RolloutProgress:
    """What one step of a rollout did, for the Progressing condition."""

    def __init__(self) -> None:
        self.reason = ""
        self.message = ""

    def created(self, replica_set: Object) -> None:
        name = replica_set["metadata"]["name"]
        self.reason, self.message = "NewReplicaSetCreated", f'Created new replica set "{name}"'

    def found(self, replica_set: Object) -> None:
        name = replica_set["metadata"]["name"]
        self.reason, self.message = "FoundNewReplicaSet", f'Found new replica set "{name}"'

    def failed(self, why: str) -> None:
        self.reason, self.message = "ReplicaSetCreateError", why


def is_complete(deployment: Object) -> bool:
    """Whether every pod is of the newest template and available, and no other is left."""
    status, replicas = deployment.get("status") or {}, deployment["spec"]["replicas"]
    counts = (status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    return all(count == replicas for count in counts) and _is_observed(deployment)


def _is_observed(deployment: Object) -> bool:
    observed: int = (deployment.get("status") or {}).get("observedGeneration", 0)
    return bool(observed >= deployment["metadata"]["generation"])


def status_of(
    deployment: Object, newest: Object | None, olds: list[Object], progress: RolloutProgress, now: float, stamp: str
) -> Object:
    """The status that the ReplicaSets add up to."""
    old = deployment.get("status") or {}
    every = [*olds, *([newest] if newest is not None else [])]
    counts = {
        "replicas": _sum(every, "replicas"),
        "updatedReplicas": _sum([newest] if newest is not None else [], "replicas"),
        "readyReplicas": _sum(every, "readyReplicas"),
        "availableReplicas": _sum(every, "availableReplicas"),
        "unavailableReplicas": max(0, rollout.total(every) - _sum(every, "availableReplicas")),
    }
    status = {
        "observedGeneration": deployment["metadata"]["generation"],
        **{key: count for key, count in counts.items() if count},
    }
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    conditions = old.get("conditions") or []
    conditions = with_condition(conditions, _availability(deployment, counts["availableReplicas"]), stamp)
    failed = next((each for each in every if condition_of(each, "ReplicaFailure")), None)
    conditions = without_condition(conditions, "ReplicaFailure")
    if failed is not None:
        conditions = with_condition(conditions, condition_of(failed, "ReplicaFailure") or {}, stamp)
    changed = any(old.get(key, 0) != counts[key] for key in counts if key != "unavailableReplicas")
    news = _progress({**deployment, "status": {**status, "conditions": conditions}}, newest, progress, changed, now)
    if news is not None:
        conditions = with_condition(conditions, {**news, "lastUpdateTime": stamp}, stamp)
    status["conditions"] = [_timed(each, stamp) for each in conditions]
    return status


def _timed(given: Object, stamp: str) -> Object:
    timed = {key: value for key, value in given.items() if key != "lastProbeTime"}
    timed.setdefault("lastUpdateTime", given.get("lastTransitionTime", stamp))
    return timed


def _sum(replica_sets: list[Object], key: str) -> int:
    return sum((each.get("status") or {}).get(key, 0) for each in replica_sets)


def _availability(deployment: Object, available: int) -> Object:
    kept: Object = condition_of(deployment, "Available") or {}
    if available >= deployment["spec"]["replicas"] - rollout.max_unavailable(deployment):
        message = "Deployment has minimum availability."
        available_now = condition("Available", "True", "MinimumReplicasAvailable", message)
    else:
        reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        available_now = condition("Available", "False", reason, message)
    if kept.get("status") == available_now["status"] and "lastUpdateTime" in kept:
        available_now["lastUpdateTime"] = kept["lastUpdateTime"]
    return available_now


def _progress(
    deployment: Object, newest: Object | None, progress: RolloutProgress, changed: bool, now: float
) -> Object | None:
    """The new Progressing condition; None where the one that is there still holds."""
    current = condition_of(deployment, "Progressing")
    reason = (current or {}).get("reason")
    if _deadline(deployment) is None:
        return None
    if deployment["spec"].get("paused"):
        paused = _progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        return None if reason == paused["reason"] else paused
    if reason == "DeploymentPaused":
        return _progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
    if progress.reason == "ReplicaSetCreateError":
        return _progressing("False", progress.reason, progress.message)
    name = f'ReplicaSet "{newest["metadata"]["name"]}"' if newest is not None else "Deployment"
    if is_complete(deployment) and newest is not None:
        done = _progressing("True", "NewReplicaSetAvailable", f"{name} has successfully progressed.")
        return None if current and all(current.get(key) == done[key] for key in ("reason", "message")) else done
    if progress.reason == "NewReplicaSetCreated":
        return _progressing("True", progress.reason, progress.message)
    if changed and current is not None:
        return _progressing("True", "ReplicaSetUpdated", f"{name} is progressing.")
    if current is None:
        return _progressing("True", progress.reason, progress.message) if progress.reason else None
    due = next_deadline(deployment, float("-inf"))
    if due is not None and due <= now:
        return _progressing("False", "ProgressDeadlineExceeded", f"{name} has timed out progressing.")
    return None


def _progressing(status: str, reason: str, message: str) -> Object:
    return condition("Progressing", status, reason, message)


def _deadline(deployment: Object) -> int | None:
    deadline: int | None = deployment["spec"].get("progressDeadlineSeconds")
    return None if deadline in (None, _FOREVER) else deadline


def next_deadline(deployment: Object, now: float) -> float | None:
    """When a rollout that is under way counts as stuck."""
    current, deadline = condition_of(deployment, "Progressing"), _deadline(deployment)
    if current is None or deadline is None or current["status"] != "True" or is_complete(deployment):
        return None
    if current["reason"] == "NewReplicaSetAvailable":
        return None
    due = seconds_of(current["lastUpdateTime"]) + deadline
    return due if due > now else None

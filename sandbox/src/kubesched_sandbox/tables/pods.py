"""How pods are shown: above all, what their status is in one word; and pod groups."""

from __future__ import annotations

from datetime import datetime

from kubesched.admission.reading import value_at
from kubesched.api.kinds import Object
from kubesched_sandbox.tables.column import NONE, count, each, human_duration, is_leaving, is_true, moment, word

_GATED = "SchedulingGated"
_LOST = "NodeLost"


def _sidecars(pod: Object) -> set[str]:
    """Init containers that keep running beside the main ones."""
    inits = each(pod, "spec", "initContainers")
    return {word(container, "name") for container in inits if container.get("restartPolicy") == "Always"}


def _is_up(status: Object, sidecars: set[str]) -> bool:
    return word(status, "name") in sidecars and status.get("started") is True


def pod_ready(pod: Object, _: datetime) -> str:
    sidecars = _sidecars(pod)
    inits = each(pod, "status", "initContainerStatuses")
    ready = sum(_is_up(status, sidecars) and status.get("ready") is True for status in inits)
    if _begun(pod):
        mains = each(pod, "status", "containerStatuses")
        ready += sum(
            status.get("ready") is True and value_at(status, "state", "running") is not None for status in mains
        )
    return f"{ready}/{len(each(pod, 'spec', 'containers')) + len(sidecars)}"


def _begun(pod: Object) -> bool:
    """Whether the init containers are done, or were once."""
    return not _initializing(pod) or is_true(pod, "Initialized")


def _initializing(pod: Object) -> str:
    """Where the pod is on its way through the init containers; nothing if it is through."""
    sidecars = _sidecars(pod)
    for i, status in enumerate(each(pod, "status", "initContainerStatuses")):
        ended = value_at(status, "state", "terminated")
        if ended is not None and count(ended, "exitCode") == 0:
            continue
        if _is_up(status, sidecars):
            continue
        if ended is not None:
            return f"Init:{_ending(ended)}"
        waiting = word(status, "state", "waiting", "reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{i}/{len(each(pod, 'spec', 'initContainers'))}"
    return ""


def _ending(ended: Object) -> str:
    """How a container ended."""
    if reason := word(ended, "reason"):
        return reason
    signal = count(ended, "signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{count(ended, 'exitCode')}"


def pod_status(pod: Object, _: datetime) -> str:
    phase = word(pod, "status", "phase")
    if is_leaving(pod):
        if word(pod, "status", "reason") == _LOST:
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    reason = word(pod, "status", "reason") or phase
    if any(
        condition.get("type") == "PodScheduled" and condition.get("reason") == _GATED
        for condition in each(pod, "status", "conditions")
    ):
        reason = _GATED
    reason = _initializing(pod) or reason
    return _containers_say(pod, reason) if _begun(pod) else reason


def _containers_say(pod: Object, reason: str) -> str:
    """What the main containers make of it: the first one that waits or ended has the say."""
    running, failure = False, ""
    for status in reversed(each(pod, "status", "containerStatuses")):
        ended = value_at(status, "state", "terminated")
        if waiting := word(status, "state", "waiting", "reason"):
            reason = waiting
        elif ended is not None:
            reason = _ending(ended)
            if count(ended, "exitCode"):
                failure = reason
        elif status.get("ready") is True and value_at(status, "state", "running") is not None:
            running = True
    if reason != "Completed":
        return reason
    if running and is_true(pod, "Ready"):
        return "Running"
    return failure or ("NotReady" if running else reason)


def pod_restarts(pod: Object, now: datetime) -> str:
    inits = each(pod, "status", "initContainerStatuses")
    if _begun(pod):
        sidecars = _sidecars(pod)
        inits = [status for status in inits if word(status, "name") in sidecars]
        inits += each(pod, "status", "containerStatuses")
    restarts = sum(count(status, "restartCount") for status in inits)
    ends = [moment(value_at(status, "lastState", "terminated", "finishedAt")) for status in inits]
    known = [end for end in ends if end is not None]
    if not restarts or not known:
        return str(restarts)
    return f"{restarts} ({human_duration((now - max(known)).total_seconds())} ago)"


def pod_address(pod: Object, _: datetime) -> str:
    addresses = [word(address, "ip") for address in each(pod, "status", "podIPs")]
    return next(filter(None, addresses), "") or word(pod, "status", "podIP", otherwise=NONE)


def pod_readiness_gates(pod: Object, _: datetime) -> str:
    gates = [word(gate, "conditionType") for gate in each(pod, "spec", "readinessGates")]
    return f"{sum(is_true(pod, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def group_policy(group: Object, _: datetime) -> str:
    policy = value_at(group, "spec", "schedulingPolicy")
    return "Gang" if isinstance(policy, dict) and policy.get("gang") is not None else "Basic"


def group_status(group: Object, _: datetime) -> str:
    conditions = {word(condition, "type"): condition for condition in each(group, "status", "conditions")}
    if "DisruptionTarget" in conditions:
        return word(conditions["DisruptionTarget"], "reason")
    for name in ("PodGroupScheduled", "PodGroupInitiallyScheduled"):
        if name in conditions:
            return "Scheduled" if is_true(group, name) else "Unschedulable"
    return "Pending"

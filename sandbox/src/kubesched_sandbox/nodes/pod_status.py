"""The status of a pod as a kubelet writes it, from being accepted to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.api.kinds import Object
from kubesched_sandbox.api.conditions import condition_of, with_condition, with_conditions, without_condition


def creating(pod: Object, host: str, now: str) -> Object:
    """Accepted: containers are being created."""
    status = dict(pod.get("status") or {})
    waiting = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
    unready = _unready(pod)
    causes = {"PodReadyToStartContainers": {}, "Initialized": {}, "Ready": unready, "ContainersReady": unready}
    new = [{"type": kind, "status": "False", **cause} for kind, cause in causes.items()]
    scheduled = {"type": "PodScheduled", "status": "True"}
    status |= {
        "phase": "Pending",
        "startTime": now,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "conditions": with_conditions(status.get("conditions") or [], [*new, scheduled], now),
        "containerStatuses": [
            _container(container, {"waiting": {"reason": waiting}}) for container in pod["spec"]["containers"]
        ],
    }
    if pod["spec"].get("initContainers"):
        first = {"waiting": {"reason": "PodInitializing"}}
        status["initContainerStatuses"] = [_container(container, first) for container in pod["spec"]["initContainers"]]
    return status


def running(pod: Object, address: str, now: str, *, restarts: int = 0) -> Object:
    """Every container runs and is ready."""
    status = dict(pod.get("status") or {})
    begun = ("PodReadyToStartContainers", "Initialized", "ContainersReady")
    new = [{"type": kind, "status": "True"} for kind in begun]
    conditions = with_conditions(status.get("conditions") or [], new, now)
    conditions = with_condition(conditions, _readiness(pod, conditions), now)
    state = {"running": {"startedAt": now}}
    status |= {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": [
            _container(container, state, ready=True, restarts=restarts) for container in pod["spec"]["containers"]
        ],
    }
    if inits := pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [
            _container(container, state, ready=True)
            if container.get("restartPolicy") == "Always"
            else _ended(container, 0, now, now)
            for container in inits
        ]
    return status


def debugged(pod: Object, containers: list[Object], now: str) -> Object:
    """Containers that were added for debugging run beside the others; they are never ready, and never restarted."""
    status = pod["status"]
    added = [_container(container, {"running": {"startedAt": now}}) for container in containers]
    return {**status, "ephemeralContainerStatuses": [*(status.get("ephemeralContainerStatuses") or ()), *added]}


def ready_again(pod: Object, now: str) -> Object:
    """A pod that kept running while its node was out of touch."""
    status = pod["status"]
    conditions = with_condition(status.get("conditions") or [], _readiness(pod, status.get("conditions") or []), now)
    return {**status, "conditions": conditions}


def ended(pod: Object, exit_code: int, now: str) -> Object:
    """Every container has ended."""
    status = dict(pod.get("status") or {})
    reason = "PodCompleted" if exit_code == 0 else "PodFailed"
    states = {**({"Initialized": "True"} if exit_code == 0 else {}), "Ready": "False", "ContainersReady": "False"}
    new = [{"type": kind, "status": state, "reason": reason} for kind, state in states.items()]
    started = _started(status) or now
    status |= {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "conditions": with_conditions(status.get("conditions") or [], new, now),
        "containerStatuses": [_ended(container, exit_code, started, now) for container in pod["spec"]["containers"]],
    }
    return status


def rejected(pod: Object, reason: str, message: str, now: str) -> Object:
    """The node does not take the pod."""
    status = {**(pod.get("status") or {}), "phase": "Failed", "reason": reason, "startTime": now}
    status["message"] = f"Pod was rejected: {message}"
    return status


def _readiness(pod: Object, conditions: list[Object]) -> Object:
    """Ready, unless a gate that the pod sets itself is not open."""
    true = {condition["type"] for condition in conditions if condition.get("status") == "True"}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    closed = [gate for gate in gates if gate not in true]
    if not closed:
        return {"type": "Ready", "status": "True"}
    message = "; ".join(f'the status of pod readiness gate "{gate}" is not "True", but False' for gate in closed)
    return {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": message}


def _unready(pod: Object) -> Object:
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    return {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}


def _started(status: Object) -> str | None:
    for container_status in status.get("containerStatuses") or ():
        if run := (container_status.get("state") or {}).get("running"):
            return str(run["startedAt"])
    return None


def _ended(container: Object, exit_code: int, started: str, now: str) -> Object:
    reason = "Completed" if exit_code == 0 else "Error"
    state = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}
    return _container(container, {"terminated": state})


def _container(container: Object, state: Object, *, ready: bool = False, restarts: int = 0) -> Object:
    status = {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "" if "waiting" in state else f"hollow://{container.get('image', '')}",
        "state": state,
        "lastState": {},
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
    }
    if "waiting" not in state:
        status["containerID"] = f"hollow://{container['name']}"
    if "running" in state:
        status["resources"] = _resources(container)
        if requests := status["resources"].get("requests"):
            status["allocatedResources"] = requests
    return status


# -- resizing: a node first allocates what a pod asks for now, and then its containers have it ------------------------

_PENDING, _IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
_KINDS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def is_resized(pod: Object) -> bool:
    """Whether containers that run are to have other resources than they have, or a resize has not ended."""
    if condition_of(pod, _PENDING) is not None or condition_of(pod, _IN_PROGRESS) is not None:
        return True
    return any(status["resources"] != _resources(container) for container, status in _resizable(pod))


def as_allocated(pod: Object) -> Object:
    """The pod with the requests that its node has allocated, which may not be yet what it asks for."""
    allocated = {container["name"]: status.get("allocatedResources", {}) for container, status in _resizable(pod)}
    containers = [
        {**container, "resources": {**container.get("resources", {}), "requests": allocated[container["name"]]}}
        if container["name"] in allocated
        else container
        for container in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def resize_pending(pod: Object, reason: str, message: str, now: str) -> Object:
    """The node does not have what the pod asks for now: not at the moment (Deferred), or never (Infeasible)."""
    conditions = with_condition(pod["status"].get("conditions") or [], _resize(pod, _PENDING, reason, message), now)
    return {**pod["status"], "conditions": conditions}


def resizing(pod: Object, now: str) -> Object:
    """The node has allocated what the pod asks for."""
    conditions = without_condition(pod["status"].get("conditions") or (), _PENDING)
    conditions = with_condition(conditions, _resize(pod, _IN_PROGRESS), now)

    def allocated(container: Object, status: Object) -> Object:
        requests = _resources(container).get("requests")
        rest = {key: value for key, value in status.items() if key != "allocatedResources"}
        return {**rest, "allocatedResources": requests} if requests else rest

    return _with_statuses(pod, conditions, allocated)


def resized(pod: Object, now: str) -> Object:
    """Containers have what was allocated; those whose resize policy says so were restarted for it."""
    conditions = without_condition(pod["status"].get("conditions") or (), _IN_PROGRESS)

    def actual(container: Object, status: Object) -> Object:
        resources = _resources(container) | {"requests": status.get("allocatedResources")}
        resources = {kind: amounts for kind, amounts in resources.items() if amounts}
        changed = {**status, "resources": resources}
        if _restarts(container, status["resources"], resources):
            changed |= {"state": {"running": {"startedAt": now}}, "restartCount": status["restartCount"] + 1}
        return changed

    return _with_statuses(pod, conditions, actual)


def _resources(container: Object) -> Object:
    resources = container.get("resources") or {}
    return {kind: resources[kind] for kind in ("limits", "requests") if resources.get(kind)}


def _resize(pod: Object, kind: str, reason: str = "", message: str = "") -> Object:
    texts = {"reason": reason, "message": message} if reason else {}
    return {"type": kind, "status": "True", "observedGeneration": pod["metadata"].get("generation", 0), **texts}


def _resizable(pod: Object) -> Iterator[tuple[Object, Object]]:
    """Each container that runs, with its status."""
    for kind, kind_of_status in _KINDS:
        statuses = {status["name"]: status for status in pod["status"].get(kind_of_status) or ()}
        for container in pod["spec"].get(kind) or ():
            status = statuses.get(container["name"])
            if status is not None and "resources" in status:
                yield container, status


def _with_statuses(pod: Object, conditions: list[Object], change: Callable[[Object, Object], Object]) -> Object:
    """The status with other conditions, and changed statuses of the containers that run."""
    changed = {status["name"]: change(container, status) for container, status in _resizable(pod)}
    status = {**pod["status"], "conditions": conditions}
    for _, kind in _KINDS:
        if kind in status:
            status[kind] = [changed.get(old["name"], old) for old in status[kind]]
    return status


def _restarts(container: Object, before: Object, now: Object) -> bool:
    return any(
        before.get(kind, {}).get(policy["resourceName"]) != now.get(kind, {}).get(policy["resourceName"])
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
        for kind in ("limits", "requests")
    )

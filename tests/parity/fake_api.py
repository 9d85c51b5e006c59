"""A small API server in memory: objects as JSON, writes that become watch events, and failures on demand."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import CONFLICT, NOT_FOUND, Awaited, ClientError, ClusterClient

Json = dict[str, Any]
ObjectKey = tuple[str, str]
"""Kind, and `namespace/name` or `name`."""

START = datetime(2026, 3, 1, tzinfo=UTC)
FINISHED = ("Succeeded", "Failed")
_PRECONDITIONS = ("uid", "resourceVersion")


class RefusedError(Exception):
    """A change that the API server does not make, with the words of the recordings."""


@dataclass(frozen=True)
class WatchEvent:
    """One thing that a watch says: ADDED, MODIFIED or DELETED, and the object as it was then."""

    type: str
    key: ObjectKey
    obj: Json


@dataclass
class Journal:
    """The calls that were made, as the recordings list them."""

    bound: list[Json] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    patches: list[Json] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)


class _Held:
    """What a held binding waits for: that its coroutine is resumed."""

    def __await__(self) -> Generator[None]:
        yield


class FakeApi(ClusterClient):
    """Holds the cluster's objects, and is what the scheduler under test writes to."""

    def __init__(self, *, graceful: bool) -> None:
        self.journal = Journal()
        self.unseen: deque[WatchEvent] = deque()
        """Watch events that nobody has been told yet, in the order of the writes."""
        self.after_preemption_write: Callable[[], None] = lambda: None
        self.after_other_write: Callable[[], None] = lambda: None
        """Of anything but pods."""
        self.holds_next_binding = False
        self._graceful = graceful
        self._objects: dict[ObjectKey, Json] = {}
        self._version = 0
        self._bindings = 0
        self._bind_failures: dict[str, list[int]] = {}
        self._delete_failures: dict[str, list[int]] = {}

    # -- what users do ------------------------------------------------------------------------------------------------

    def make(self, obj: Json) -> None:
        key = key_of(obj)
        if key in self._objects:
            raise RefusedError("already exists")
        self._store("ADDED", key, copy.deepcopy(obj))

    def update(self, key: ObjectKey, patch: Json) -> None:
        """A JSON merge patch on the object as it is now."""
        old = self._get(key)
        new = merged(old, patch)
        node_name = old.get("spec", {}).get("nodeName")
        if key[0] == "Pod" and node_name and new.get("spec", {}).get("nodeName") != node_name:
            raise RefusedError("rejected: spec.nodeName is immutable")
        self._store("MODIFIED", key, new)

    def remove(self, key: ObjectKey) -> None:
        self._get(key)
        self._store("DELETED", key, self._objects.pop(key))

    def terminate(self, name: str) -> None:
        self.update(("Pod", name), {"metadata": {"deletionTimestamp": _stamp(0)}})

    def fail_binds(self, pod: str, code: int, count: int) -> None:
        self._bind_failures.setdefault(pod, []).extend([code] * count)

    def fail_deletes(self, pod: str, code: int, count: int) -> None:
        self._delete_failures.setdefault(pod, []).extend([code] * count)

    # -- what the scheduler writes ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        """As the binding subresource does, or as it was told to fail; a binding that is to be held waits first."""
        if self.holds_next_binding:
            self.holds_next_binding = False
            await _Held()
        call: Json = {"pod": pod.key, "node": node_name}
        self.journal.bound.append(call)
        try:
            self._check_bind(pod)
        except ClientError as error:
            call["error"] = str(error)
            raise
        self._bindings += 1
        bound = PodCondition(type="PodScheduled", status="True")
        status = {"nominatedNodeName": None, "startTime": _stamp(self._bindings)}
        conditions = self._with_condition(("Pod", pod.key), bound)
        self.update(("Pod", pod.key), {"spec": {"nodeName": node_name}, "status": {**status, "conditions": conditions}})

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Only what differs from the scheduler's own copy is sent; if nothing does, nothing is."""
        entry: Json = {"pod": pod.key}
        patch: Json = {}
        key = ("Pod", pod.key)
        if condition is not None and condition not in pod.status.conditions:
            entry.update(_described(condition))
            patch["conditions"] = self._with_condition(key, condition)
        if nominated_node_name not in (None, pod.status.nominated_node_name):
            entry["nominatedNodeName"] = nominated_node_name
            patch["nominatedNodeName"] = nominated_node_name or None
        if not patch:
            return
        if key not in self._objects:
            raise _not_found(pod)
        self.journal.patches.append(entry)
        self.update(key, {"status": patch})
        if condition is None and nominated_node_name == "":
            # Nobody but a preemption takes a nomination away without saying why.
            self.after_preemption_write()

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        """The condition first, then the deletion, which may be armed to fail."""
        key = ("Pod", pod.key)
        if key in self._objects and condition not in pod.status.conditions:
            self.journal.patches.append({"pod": pod.key, **_described(condition)})
            self.update(key, {"status": {"conditions": self._with_condition(key, condition)}})
            self.after_preemption_write()
        if _next_failure(self._delete_failures, pod.key):
            self.journal.evicted.append(f"{pod.key} FAILED")
            raise _internal_error()
        if key not in self._objects:
            raise _not_found(pod)
        self.journal.evicted.append(pod.key)
        if self._graceful and self._objects[key].get("spec", {}).get("nodeName"):
            self.terminate(pod.key)
        else:
            self.remove(key)
        self.after_preemption_write()

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return self._get((kind, f"{namespace}/{name}"))

    async def create(self, kind: str, obj: Json) -> Json:
        made = {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['generateName']}0"}, "kind": kind}
        self.make(made)
        self.after_other_write()
        return self._get(key_of(made))

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        key = key_of({**obj, "kind": kind})
        self._get(key)
        self._store("MODIFIED", key, obj)
        self.after_other_write()
        return self._get(key)

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        """The patch, and for storage at once what the controllers of volumes make of it."""
        key = (kind, f"{namespace}/{name}" if namespace else name)
        given = {**patch, "metadata": {k: v for k, v in patch["metadata"].items() if k not in _PRECONDITIONS}}
        self.update(key, given)
        if kind == "PersistentVolume":
            reference = patch["spec"]["claimRef"]
            self._bind_volume(name, f"{reference['namespace']}/{reference['name']}")
        elif kind == "PersistentVolumeClaim":
            self._provision(key)
        self.after_other_write()
        return self._get(key)

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        self.remove((kind, f"{namespace}/{name}"))
        self.after_other_write()

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return True

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        entry = {"object": pod.key, "type": type, "reason": reason, "action": action, "note": note}
        self.journal.events.append(entry)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _get(self, key: ObjectKey) -> Json:
        try:
            return self._objects[key]
        except KeyError:
            raise RefusedError("not found") from None

    def _store(self, type_: str, key: ObjectKey, obj: Json) -> None:
        self._version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        if type_ != "DELETED":
            self._objects[key] = obj
        self.unseen.append(WatchEvent(type_, key, obj))

    def _check_bind(self, pod: Pod) -> None:
        code = _next_failure(self._bind_failures, pod.key)
        if code == 409:
            raise _conflict(pod, "injected conflict")
        stored = self._objects.get(("Pod", pod.key))
        if code == 404 or (stored is None and not code):
            raise _not_found(pod)
        if code or stored is None:
            raise _internal_error()
        spec, meta = stored.get("spec", {}), stored["metadata"]
        if meta.get("uid", "") != pod.uid:
            uids = f"UID in precondition: {pod.uid}, UID in object meta: {meta.get('uid', '')}"
            raise _conflict(pod, f"Precondition failed: {uids}")
        if meta.get("deletionTimestamp"):
            raise _conflict(pod, f"pod {pod.name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise _conflict(pod, f'pod {pod.name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise _conflict(pod, f"pod {pod.name} has non-empty .spec.schedulingGates")

    def _with_condition(self, key: ObjectKey, condition: PodCondition) -> list[Json]:
        conditions: list[Json] = self._objects.get(key, {}).get("status", {}).get("conditions") or []
        described = _described(condition)
        if not any(old["type"] == condition.type for old in conditions):
            return [*conditions, described]
        return [described if old["type"] == condition.type else old for old in conditions]

    def _provision(self, key: ObjectKey) -> None:
        stored = self._get(key)
        claim = stored["metadata"]
        reference = {"kind": key[0], **{part: claim.get(part, "") for part in ("namespace", "name", "uid")}}
        spec = {name: stored["spec"][name] for name in ("accessModes", "storageClassName") if name in stored["spec"]}
        capacity = stored["spec"].get("resources", {}).get("requests", {})
        name = f"pvc-{claim['name']}"
        self.make(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {**spec, "capacity": capacity, "claimRef": reference},
            }
        )
        self._bind_volume(name, key[1])

    def _bind_volume(self, volume: str, claim: str) -> None:
        self.update(("PersistentVolume", volume), {"status": {"phase": "Bound"}})
        bound = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": volume},
            "status": {"phase": "Bound"},
        }
        self.update(("PersistentVolumeClaim", claim), bound)


def key_of(obj: Json) -> ObjectKey:
    """Where an object is stored."""
    meta = obj["metadata"]
    return obj["kind"], f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7386: null deletes, everything but objects replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _described(condition: PodCondition) -> Json:
    fields = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    return {name: value for name, value in fields.items() if value}


def _next_failure(armed: dict[str, list[int]], pod: str) -> int:
    codes = armed.get(pod)
    return codes.pop(0) if codes else 0


def _stamp(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _conflict(pod: Pod, why: str) -> ClientError:
    return ClientError(CONFLICT, f'Operation cannot be fulfilled on pods/binding "{pod.name}": {why}')


def _not_found(pod: Pod) -> ClientError:
    return ClientError(NOT_FOUND, f'pods "{pod.name}" not found')


def _internal_error() -> ClientError:
    return ClientError("InternalError", "Internal error occurred: injected error")

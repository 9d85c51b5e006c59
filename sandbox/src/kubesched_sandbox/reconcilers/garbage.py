"""Garbage: objects whose owners are gone, pods of lost nodes, too many ended pods, PodGroups that no pod needs."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from kubesched.admission import SERVED
from kubesched.admission.policy import PROTECTION
from kubesched.api import kinds
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import condition, is_finished, is_terminating
from kubesched_sandbox.api.reading import FOREGROUND, ORPHAN
from kubesched_sandbox.reconcilers.ownership import Grouped
from kubesched_sandbox.reconcilers.reconciler import Key, KeyedReconciler, ObjectReconciler, key_of

_COLLECTED = tuple(
    resource
    for resource in SERVED
    if "delete" in resource.verbs and resource not in (kinds.CORE_EVENTS, kinds.EVENTS, kinds.OLDER_AUTOSCALERS)
)


class Known(msgspec.Struct, frozen=True, gc=False):
    """What the graph remembers of an object."""

    resource: Resource
    namespace: str
    name: str
    owners: tuple[Object, ...]
    finalizers: tuple[str, ...] = ()
    going: bool = False

    @property
    def waits_for_dependents(self) -> bool:
        return self.going and FOREGROUND in self.finalizers

    def blocks(self, uid: str) -> bool:
        """Whether an owner that waits for its dependents waits for this one."""
        return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in self.owners)


class GarbageCollector(KeyedReconciler):
    """Deletes objects whose owners are gone. Keys are uids, so that a name that comes back is another object."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = _COLLECTED
        self._known: dict[str, Known] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._subscribed: set[str] = {resource.path for resource in _COLLECTED}
        self._new_definitions = True

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == kinds.CUSTOM_RESOURCE_DEFINITIONS.path:
            self._new_definitions = True
        uid = event.object["metadata"]["uid"]
        if event.type == "DELETED":
            self._forget(uid)
            return
        new, old = _known(event.resource, event.object), self._known.get(uid)
        self._known[uid] = new
        if old is None or old.owners != new.owners:
            for owner in old.owners if old is not None else ():
                self._unlink(owner["uid"], uid)
            for owner in new.owners:
                self._dependents.setdefault(owner["uid"], {})[uid] = None
            if new.owners:
                self.queue.add(("", uid))
        if new.going and (FOREGROUND in new.finalizers or ORPHAN in new.finalizers):
            self.queue.add(("", uid))

    def _forget(self, uid: str) -> None:
        gone = self._known.pop(uid, None)
        for dependent in self._dependents.get(uid, ()):
            self.queue.add(("", dependent))
        for owner in gone.owners if gone is not None else ():
            self._unlink(owner["uid"], uid)
            above = self._known.get(owner["uid"])
            if above is not None and above.going:
                self.queue.add(("", owner["uid"]))

    def _unlink(self, owner: str, uid: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(uid, None)
            if not dependents:
                del self._dependents[owner]

    def reconcile(self, now: float) -> float | None:
        if self._new_definitions:
            self._new_definitions = False
            self._follow_definitions()
        return super().reconcile(now)

    def _follow_definitions(self) -> None:
        """Watch the objects of kinds that users defined too."""
        for resource in self.api.catalog.all():
            if resource.path not in self._subscribed and self.api.catalog.is_custom(resource):
                self._subscribed.add(resource.path)
                self.api.subscribe((resource,), self.observe)

    def sync(self, key: Key, now: float) -> float | None:
        uid = key[1]
        known = self._known.get(uid)
        obj = None if known is None else self.api.find(known.resource, known.namespace, known.name)
        if known is None or obj is None or obj["metadata"]["uid"] != uid:
            return None
        if known.going:
            self._finish(uid, known, obj)
        if known.owners:
            self._check_owners(uid, known, obj)
        return None

    # -- owners that wait ---------------------------------------------------------------------------------------------

    def _finish(self, uid: str, known: Known, obj: Object) -> None:
        dependents = [dependent for dependent in self._dependents.get(uid, ()) if dependent in self._known]
        if ORPHAN in known.finalizers:
            for dependent in dependents:
                self._drop_owners(dependent, {uid})
            self.drop_finalizer(known.resource, obj, ORPHAN)
        elif FOREGROUND in known.finalizers:
            for dependent in dependents:
                self.queue.add(("", dependent))
            if not any(self._known[dependent].blocks(uid) for dependent in dependents):
                self.drop_finalizer(known.resource, obj, FOREGROUND)

    # -- dependents ---------------------------------------------------------------------------------------------------

    def _check_owners(self, uid: str, known: Known, obj: Object) -> None:
        there = {owner["uid"]: self._known.get(owner["uid"]) for owner in known.owners}
        # An owner of another namespace is none: names of namespaced objects do not reach that far.
        alive = {u: each for u, each in there.items() if each and each.namespace in ("", known.namespace)}
        gone = there.keys() - alive.keys()
        waiting = {u for u, each in alive.items() if each.waits_for_dependents}
        if alive.keys() - waiting:
            if gone | waiting:
                self._drop_owners(uid, gone | waiting)
            return
        if known.going:
            return
        # Dependents of dependents must go before an owner that waits for all of them.
        foreground = bool(waiting) and bool(self._dependents.get(uid))
        self._delete(known, obj, "Foreground" if foreground else _own_propagation(obj))

    def _delete(self, known: Known, obj: Object, propagation: str) -> None:
        try:
            self.api.delete(
                known.resource, known.namespace, known.name, propagation=propagation, uid=obj["metadata"]["uid"]
            )
        except ApiError as error:
            if error.code != 404:
                raise

    def _drop_owners(self, uid: str, owners: set[str]) -> None:
        known = self._known[uid]
        obj = self.api.find(known.resource, known.namespace, known.name)
        if obj is None or obj["metadata"]["uid"] != uid:
            return
        kept = [
            reference for reference in obj["metadata"].get("ownerReferences") or () if reference["uid"] not in owners
        ]
        self.write_metadata(known.resource, obj, ownerReferences=kept)


def _own_propagation(obj: Object) -> str:
    finalizers = obj["metadata"].get("finalizers") or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


def _known(resource: Resource, obj: Object) -> Known:
    metadata = obj["metadata"]
    return Known(
        resource,
        metadata.get("namespace", ""),
        metadata["name"],
        tuple(metadata.get("ownerReferences") or ()),
        tuple(metadata.get("finalizers") or ()),
        "deletionTimestamp" in metadata,
    )


_QUARANTINE = 40.0
"""Seconds that a node may be missing before its pods are given up."""
KEPT = 12_500
"""Pods that have ended and may stay for people to look at."""


class PodGarbage(ObjectReconciler):
    """Removes pods on nodes that are gone, and the oldest ended pods beyond a number."""

    def __init__(self, api: Api, pods_by_node: Grouped, *, kept: int = KEPT) -> None:
        super().__init__(api, kinds.PODS, kinds.NODES)
        self._kept = kept
        self._ended: OrderedDict[Key, None] = OrderedDict()
        self._missing: dict[str, float] = {}
        """Since when a node that pods are on has been missing."""
        self._pods = pods_by_node

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == kinds.NODES.path:
            name = event.object["metadata"]["name"]
            if event.type == "DELETED":
                for pod in self._pods.of(name):
                    self.queue.add(key_of(pod))
            else:
                self._missing.pop(name, None)
            return
        pod, key = event.object, key_of(event.object)
        node = pod["spec"].get("nodeName")
        if event.type == "DELETED":
            self._ended.pop(key, None)
            return
        if node and (event.old is None or not event.old["spec"].get("nodeName")):
            self.queue.add(key)
        if is_finished(pod):
            self._ended[key] = None
            if len(self._ended) > self._kept:
                self.queue.add(next(iter(self._ended)))

    def sync_object(self, pod: Object, now: float) -> float | None:
        key = key_of(pod)
        if key in self._ended and len(self._ended) > self._kept:
            self._remove(pod)
            return None
        node = pod["spec"].get("nodeName")
        if not node or self.api.find(kinds.NODES, "", node) is not None:
            return None
        until = self._missing.setdefault(node, now) + _QUARANTINE
        if until > now:
            return until
        self._give_up(pod)
        return None

    def _give_up(self, pod: Object) -> None:
        """A pod on a node that is gone has failed."""
        if not is_finished(pod):
            leaving = condition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
            pod = self.write_condition(kinds.PODS, pod, leaving, phase="Failed")
        self._remove(pod)

    def _remove(self, pod: Object) -> None:
        self.api.delete(kinds.PODS, *key_of(pod), grace=0, uid=pod["metadata"]["uid"])


class PodGroupProtection(ObjectReconciler):
    """Drops the finalizer, which every new group gets, once nobody needs the group."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, kinds.POD_GROUPS, kinds.PODS)
        self._members = Grouped(api, kinds.PODS, _group_of)

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == kinds.POD_GROUPS.path:
            if is_terminating(event.object):
                self.queue.add(key_of(event.object))
        elif event.type == "DELETED" or is_finished(event.object):
            for group in _group_of(event.object):
                namespace, _, name = group.partition("/")
                self.queue.add((namespace, name))

    def sync_object(self, group: Object, now: float) -> float | None:
        key = key_of(group)
        if not is_terminating(group):
            return None
        is_held = PROTECTION in (group["metadata"].get("finalizers") or ())
        if is_held and all(map(is_finished, self._members.of("/".join(key)))):
            self.drop_finalizer(kinds.POD_GROUPS, group, PROTECTION)
        return None


def _group_of(pod: Object) -> tuple[str, ...]:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()

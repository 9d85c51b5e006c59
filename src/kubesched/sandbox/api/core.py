"""The API as plain calls: each is one atomic step, and raises an ApiError where a server would answer with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal

import msgspec

from kubesched.sandbox.admission import admit_update, deletion_grace
from kubesched.sandbox.api import binding as bindings
from kubesched.sandbox.api import custom, deleting
from kubesched.sandbox.api import eviction as evictions
from kubesched.sandbox.api.catalog import Catalog, table_of
from kubesched.sandbox.api.interim import admit_create, apply, track
from kubesched.sandbox.api.options import DeleteOptions
from kubesched.sandbox.api.preconditions import check_delete, check_update, metadata_of
from kubesched.sandbox.api.scale import WORKLOAD, ScalePaths, custom_paths, scale_of, scaled
from kubesched.sandbox.api.selecting import ALL, Selection, selection
from kubesched.sandbox.api.stamps import Stamps, identity
from kubesched.sandbox.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
)
from kubesched.sandbox.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Object,
    Resource,
)
from kubesched.sandbox.patching import json_patch, merge_patch, strategic_merge
from kubesched.sandbox.store import Change, Record, Store

_NAME_ATTEMPTS = 8
_PROTECTED_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))


class Event(msgspec.Struct, frozen=True, gc=False):
    """What happened to one object. A deletion carries the last state, at the revision of the deletion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: Resource
    object: Object
    old: Object | None
    revision: int


class PatchKind(Enum):
    """The ways to say a change, by their content types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Api:
    """Objects with everything that Kubernetes promises about them. Single-threaded, synchronous."""

    def __init__(self, store: Store, stamps: Stamps | None = None) -> None:
        self.store = store
        self.stamps = stamps or Stamps()
        self.catalog = Catalog()
        for record in store.table(table_of(CUSTOM_RESOURCE_DEFINITIONS)).ordered():
            self.catalog.define(record.object)

    # Reading

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        record = self.record(resource, namespace, name)
        return None if record is None else self._shown(resource, record.object)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        obj = self.find(resource, namespace, name)
        if obj is None:
            raise not_found(resource, name)
        return obj

    def select(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        """The objects of one namespace, or of all, in the order of their names."""
        wanted = selection(resource, labels, fields)
        return [self._shown(resource, record.object) for record in self.records(resource, namespace, wanted)]

    def record(self, resource: Resource, namespace: str, name: str) -> Record | None:
        return self.store.table(table_of(resource)).get(namespace, name)

    def records(self, resource: Resource, namespace: str | None = None, wanted: Selection = ALL) -> list[Record]:
        """What `select` finds, as it is stored."""
        table = self.store.table(table_of(resource))
        if wanted.is_everything:
            return list(table.ordered(namespace))
        space = wanted.namespace if namespace is None else namespace
        if wanted.name is not None and (space is not None or not resource.namespaced):
            record = table.get(space or "", wanted.name)
            return [record] if record is not None and wanted.matches(record.object) else []
        return [record for record in table.ordered(space) if wanted.matches(record.object)]

    def subscribe(
        self, resources: Iterable[Resource], on_event: Callable[[Event], None], *, replay: bool = True
    ) -> Callable[[], None]:
        """Hear of every change of these resources at once, and first of what is there. Returns how to stop."""
        by_table: dict[str, list[Resource]] = {}
        for resource in resources:
            by_table.setdefault(table_of(resource), []).append(resource)
        since = self.store.revision

        def tell(change: Change) -> None:
            if change.revision > since and change.table in by_table:
                for resource in by_table[change.table]:
                    on_event(self.event(resource, change))

        stop = self.store.listen(tell)
        if replay:
            for resource in [resource for listed in by_table.values() for resource in listed]:
                for record in self.records(resource):
                    on_event(Event("ADDED", resource, self._shown(resource, record.object), None, record.revision))
        return stop

    def event(self, resource: Resource, change: Change) -> Event:
        """A change of the store as one of a resource."""
        old = None if change.old is None else self._shown(resource, change.old.object)
        return Event(change.type, resource, self._shown(resource, change.record.object), old, change.revision)

    # Writing

    def create(
        self, resource: Resource, namespace: str, obj: Object, *, manager: str = "", dry_run: bool = False
    ) -> Object:
        """Store a new object: named, stamped, defaulted and checked."""
        metadata = metadata_of(obj)
        given = metadata.get("namespace")
        if resource.namespaced and given and given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        name = metadata.get("name")
        if resource.namespaced:
            self._check_namespace(resource, namespace, name if isinstance(name, str) else "")
        metadata = identity(self.stamps, metadata, namespace if resource.namespaced else "")
        self._name(resource, namespace, metadata)
        new = {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        new = admit_create(resource, new, self)
        if resource is CUSTOM_RESOURCE_DEFINITIONS:
            new = custom.established(new, self.stamps.now())
        if self.record(resource, namespace, metadata["name"]) is not None:
            raise already_exists(resource, metadata["name"])
        new = track(resource, None, new, manager=manager, subresource="", now=self.stamps.now())
        return self._put(resource, new, dry_run)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        obj: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object, or that half of it which the subresource is about."""
        old = self.get(resource, namespace, name)
        new = {**obj, "metadata": metadata_of(obj)}
        check_update(resource, old, new)
        return self._write(resource, old, new, subresource, manager, dry_run)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        check: Callable[[Object], object] | None = None,
    ) -> Object:
        """Change an object as a patch says; an apply of an object that is not there creates it.

        `check` sees the patched object before anything is done with it, and may raise.
        """
        if kind is PatchKind.APPLY:
            return self._apply(resource, namespace, name, patch, subresource, manager, force, dry_run)
        old = self.get(resource, namespace, name)
        new = patched(resource, old, patch, kind)
        if check is not None:
            check(new)
        new["metadata"] = metadata_of(new)
        check_update(resource, old, new)
        return self._write(resource, old, new, subresource, manager, dry_run)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        grace: int | None = None,
        propagation: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Remove an object, or mark it when its grace or its finalizers ask for more. Returns its last state."""
        old = self.get(resource, namespace, name)
        if resource is NAMESPACES and name in _PROTECTED_NAMESPACES - {"kube-node-lease"}:
            raise forbidden(resource, name, "this namespace may not be deleted")
        check_delete(resource, old, uid, resource_version)
        requested = None if grace is None else (1 if grace < 0 else grace)
        period = deleting.grace_left(old, deletion_grace(resource, old, requested), requested)
        going = deleting.marked(resource, old, grace=period, propagation=propagation, stamps=self.stamps)
        if going is None:
            return self._remove(resource, old, dry_run)
        if going["metadata"] == old["metadata"]:
            return old
        shown = self._put(resource, going, dry_run)
        if resource is NAMESPACES and not dry_run:
            self._empty(name)
        return shown

    def bind(self, namespace: str, name: str, binding: Object, *, dry_run: bool = False) -> None:
        """Assign a pod to a node, once."""
        target = bindings.target_of(name, binding)
        pod = self.get(PODS, namespace, name)
        bindings.check(pod, binding)
        node = self.find(NODES, "", target)
        self._put(PODS, bindings.bound(pod, binding, node, target, self.stamps.now()), dry_run)

    def evict(self, namespace: str, name: str, eviction: Object, *, dry_run: bool = False) -> None:
        """Delete a pod if its disruption budget allows."""
        given = metadata_of(eviction)
        if given.get("name", name) != name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = DeleteOptions.read(eviction.get("deleteOptions"))
        pod = self.get(PODS, namespace, name)
        check_delete(PODS, pod, options.uid, options.resource_version)
        if not evictions.needs_no_budget(pod):
            self._charge(pod, dry_run or options.dry_run)
        if dry_run or options.dry_run:
            return
        status = pod.get("status") or {}
        conditions = bindings.with_condition(status.get("conditions") or [], evictions.EVICTED, self.stamps.now())
        self._put(PODS, {**pod, "status": {**status, "conditions": conditions}}, False)
        self.delete(PODS, namespace, name, grace=options.grace, propagation=options.propagation)

    def scale(self, resource: Resource, namespace: str, name: str) -> Object:
        """The Scale of a workload."""
        return scale_of(resource, self.get(resource, namespace, name), self._scale_paths(resource))

    def update_scale(
        self, resource: Resource, namespace: str, name: str, scale: Object, *, manager: str = "", dry_run: bool = False
    ) -> Object:
        """Set the replicas of a workload through its Scale."""
        old = self.get(resource, namespace, name)
        check_update(resource, old, {"metadata": metadata_of(scale)})
        paths = self._scale_paths(resource)
        new = self._write(resource, old, scaled(resource, old, scale, paths), "", manager, dry_run)
        return scale_of(resource, new, paths)

    def patch_scale(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        *,
        kind: PatchKind,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change the replicas of a workload by a patch of its Scale."""
        scale = self.scale(resource, namespace, name)
        # A Scale has no lists, so a strategic merge is a merge.
        kind = PatchKind.MERGE if kind in (PatchKind.STRATEGIC, PatchKind.APPLY) else kind
        new = patched(resource, scale, patch, kind)
        return self.update_scale(resource, namespace, name, new, manager=manager, dry_run=dry_run)

    # How it is done

    def _charge(self, pod: Object, dry_run: bool) -> None:
        namespace = pod["metadata"]["namespace"]
        budget = evictions.budget_of(pod, self.select(POD_DISRUPTION_BUDGETS, namespace))
        if budget is None or evictions.may_go_unhealthy(pod, budget):
            return
        self._put(
            POD_DISRUPTION_BUDGETS, evictions.charged(budget, pod["metadata"]["name"], self.stamps.now()), dry_run
        )

    def _scale_paths(self, resource: Resource) -> ScalePaths:
        definition = self.find(CUSTOM_RESOURCE_DEFINITIONS, "", resource.qualified)
        return WORKLOAD if definition is None else custom_paths(custom.version_of(definition, resource.version))

    def _write(
        self, resource: Resource, old: Object, new: Object, subresource: str, manager: str, dry_run: bool
    ) -> Object:
        metadata = _kept(old["metadata"], new["metadata"])
        new = {**new, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        new = admit_update(resource, old, new, subresource, self)
        if resource is CUSTOM_RESOURCE_DEFINITIONS and not subresource:
            new = custom.established(new, self.stamps.now())
        if _same(old, new):
            return old
        new = track(resource, old, new, manager=manager, subresource=subresource, now=self.stamps.now())
        if deleting.is_finished(resource, new):
            return self._remove(resource, self._put(resource, new, dry_run), dry_run)
        return self._put(resource, new, dry_run)

    def _apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        applied: Any,
        subresource: str,
        manager: str,
        force: bool,
        dry_run: bool,
    ) -> Object:
        if not manager:
            raise bad_request(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            )
        given = metadata_of(applied)
        if given.setdefault("name", name) != name:
            raise bad_request(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
        live = self.find(resource, namespace, name)
        if live is None and subresource:
            raise not_found(resource, name)
        now = self.stamps.now()
        new = apply(resource, live, {**applied, "metadata": given}, manager=manager, force=force, now=now)
        if live is None:
            return self.create(resource, namespace, new, dry_run=dry_run)
        new["metadata"] = metadata_of(new)
        check_update(resource, live, new)
        return self._write(resource, live, new, subresource, "", dry_run)

    def _name(self, resource: Resource, namespace: str, metadata: Object) -> None:
        if metadata.get("name"):
            return
        base = metadata.get("generateName")
        if not base or not isinstance(base, str):
            required = Cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired")
            raise invalid(resource, "", [required])
        for _ in range(_NAME_ATTEMPTS):
            metadata["name"] = self.stamps.name(base)
            if self.record(resource, namespace, metadata["name"]) is None:
                return

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        found = self.record(NAMESPACES, "", namespace)
        if found is None:
            raise not_found(NAMESPACES, namespace)
        if (found.object.get("status") or {}).get("phase") == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource, name, why)
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            error.details["causes"] = [{**cause, "message": f"namespace {namespace} is being terminated"}]
            raise error

    def _put(self, resource: Resource, obj: Object, dry_run: bool) -> Object:
        if dry_run:
            return obj
        view = self.catalog.view(resource)
        stored = obj if view is None else view.stored(obj)
        record = self.store.put(table_of(resource), stored)
        if resource is CUSTOM_RESOURCE_DEFINITIONS:
            self.catalog.define(record.object)
        return self._shown(resource, record.object)

    def _remove(self, resource: Resource, obj: Object, dry_run: bool) -> Object:
        if dry_run:
            return obj
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        record = self.store.remove(table_of(resource), namespace, metadata["name"])
        if resource is CUSTOM_RESOURCE_DEFINITIONS:
            self._forget(metadata["name"])
        if namespace:
            self._finish_namespace(namespace)
        return self._shown(resource, record.object)

    def _shown(self, resource: Resource, obj: Object) -> Object:
        view = self.catalog.view(resource)
        return obj if view is None else view.shown(obj)

    def _forget(self, definition: str) -> None:
        resources = self.catalog.forget(definition)
        for record in self.store.table(definition).ordered() if resources else ():
            metadata = record.object["metadata"]
            self.store.remove(definition, metadata.get("namespace", ""), metadata["name"])

    def _empty(self, namespace: str) -> None:
        """Delete everything in a namespace that is going; its last object takes the namespace along."""
        for resource in self.catalog.all():
            if resource.namespaced and "delete" in resource.verbs:
                for record in self.records(resource, namespace):
                    if self.record(resource, namespace, record.object["metadata"]["name"]) is not None:
                        self.delete(resource, namespace, record.object["metadata"]["name"], propagation="Background")
        self._finish_namespace(namespace)

    def _finish_namespace(self, name: str) -> None:
        """Let go of a namespace that is going and empty."""
        record = self.record(NAMESPACES, "", name)
        if record is None or "deletionTimestamp" not in record.object["metadata"]:
            return
        if any(self.store.table(table).namespaces.get(name) for table in self._namespaced_tables()):
            return
        spec = record.object.get("spec") or {}
        others = [finalizer for finalizer in spec.get("finalizers") or () if finalizer != "kubernetes"]
        finalized = {**record.object, "spec": {**spec, "finalizers": others}}
        if deleting.is_finished(NAMESPACES, finalized):
            self.store.remove(table_of(NAMESPACES), "", name)
        elif others != spec.get("finalizers"):
            self._put(NAMESPACES, finalized, False)

    def _namespaced_tables(self) -> set[str]:
        return {table_of(resource) for resource in self.catalog.all() if resource.namespaced}


def patched(resource: Resource, obj: Object, patch: Any, kind: PatchKind) -> Object:
    """The object after a patch; never the object itself."""
    match kind:
        case PatchKind.JSON:
            return dict(json_patch(obj, patch))
        case PatchKind.MERGE:
            return dict(merge_patch(obj, patch))
        case PatchKind.STRATEGIC:
            return dict(strategic_merge(resource, obj, patch))
        case PatchKind.APPLY:
            raise method_not_allowed()


_FIXED = (
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


def _kept(old: Object, new: Object) -> Object:
    """The metadata of an update: what only the server may say stays as it was."""
    metadata = {key: value for key, value in new.items() if key not in _FIXED and key != "selfLink"}
    for key in (*_FIXED, "namespace"):
        if key in old:
            metadata[key] = old[key]
    return metadata


def _same(old: Object, new: Object) -> bool:
    """Whether an update changes nothing but, at most, who manages what."""
    if old == new:
        return True
    if old["metadata"] == new["metadata"] or old.keys() != new.keys():
        return False
    before = {key: value for key, value in old["metadata"].items() if key != "managedFields"}
    after = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    return before == after and all(old[key] == new[key] for key in old if key != "metadata")


__all__ = ["Api", "ApiError", "Event", "PatchKind", "patched"]

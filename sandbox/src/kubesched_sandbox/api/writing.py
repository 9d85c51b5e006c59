"""Writes through the API: objects are named, stamped and admitted, and removed once no finalizer holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from kubesched.admission import admit_create, admit_update, deletion_grace
from kubesched.admission.limits import charge_quotas
from kubesched.admission.rules import Mistakes
from kubesched.api.api_error import already_exists, bad_request, forbidden, invalid, method_not_allowed, not_found
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, RESOURCE_QUOTAS, Object, Resource
from kubesched.api.merge_patch import merge_patch
from kubesched.api.schema import Mistake
from kubesched_sandbox.api.catalog import table_of, with_established
from kubesched_sandbox.api.reading import (
    check_delete,
    check_update,
    grace_left,
    is_deletion_finished,
    marked_for_deletion,
    metadata_of,
)
from kubesched_sandbox.api.reviewing import Patches, Reviewing
from kubesched_sandbox.api.stamps import identity
from kubesched_sandbox.custom import check_definition, custom_schema
from kubesched_sandbox.patching import apply, strategic_merge, track

_NAME_ATTEMPTS = 8
_PROTECTED_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))


class PatchKind(Enum):
    """The formats of patches, by their content types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Writing(Reviewing):
    """Creates, changes and deletes objects of every resource."""

    def create(
        self,
        resource: Resource,
        namespace: str,
        obj: Object,
        *,
        manager: str = "",
        dry_run: bool = False,
        then: Sequence[Any] = (),
    ) -> Object:
        """Store a new object: named, stamped, defaulted and checked. `then` are JSON patches of what came out."""
        then = then or self._review(
            "CREATE",
            resource,
            namespace,
            obj,
            None,
            lambda patches: self._create(resource, namespace, obj, manager, True, patches),
        )
        return self._create(resource, namespace, obj, manager, dry_run, then)

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
        then: Sequence[Any] = (),
    ) -> Object:
        """Replace an object, or that half of it which the subresource is about."""
        old = self.get(resource, namespace, name)
        new = {**obj, "metadata": metadata_of(obj)}
        return self._change(resource, old, new, subresource, manager, dry_run, then)

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
        then: Sequence[Any] = (),
    ) -> Object:
        """Change an object as a patch says; an apply of an object that is not there creates it.

        `check` sees the patched object before anything is done with it, and may raise.
        """
        if kind is PatchKind.APPLY:
            return self._apply(resource, namespace, name, patch, subresource, manager, force, dry_run, then)
        old = self.get(resource, namespace, name)
        new = apply_patch(resource, old, patch, kind)
        if check is not None:
            check(new)
        new["metadata"] = metadata_of(new)
        return self._change(resource, old, new, subresource, manager, dry_run, then)

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
        if resource is NAMESPACES and name in _PROTECTED_NAMESPACES:
            raise forbidden(resource, name, "this namespace may not be deleted")
        check_delete(resource, old, uid, resource_version)
        self._review("DELETE", resource, namespace, old, old, lambda _: None)
        requested = None if grace is None else (1 if grace < 0 else grace)
        period = grace_left(old, deletion_grace(resource, old, requested), requested)
        going = marked_for_deletion(resource, old, grace=period, propagation=propagation, stamps=self.stamps)
        if going is None:
            return self._remove(resource, old, dry_run)
        if going["metadata"] == old["metadata"]:
            return old
        shown = self._put(resource, going, dry_run)
        if resource is NAMESPACES and not dry_run:
            self._empty(name)
        return shown

    def _create(
        self,
        resource: Resource,
        namespace: str,
        obj: Object,
        manager: str | None,
        dry_run: bool,
        then: Sequence[Any] = (),
    ) -> Object:
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
        new = admit_create(resource, _completed(resource, new), self)
        for patch in then:
            new = admit_create(resource, _completed(resource, dict(json_patch(new, patch))), self)
        _check_custom(resource, new, None)
        if resource is CUSTOM_RESOURCE_DEFINITIONS:
            new = with_established(new, self.stamps.now())
        if self.record(resource, namespace, metadata["name"]) is not None:
            raise already_exists(resource, metadata["name"])
        shares = charge_quotas(resource, new, self.select(RESOURCE_QUOTAS, namespace)) if resource.namespaced else ()
        if manager is not None:
            new = track(resource, None, new, manager=manager, subresource="", now=self.stamps.now())
        for quota in shares:
            self._put(RESOURCE_QUOTAS, quota, dry_run)
        return self._put(resource, new, dry_run)

    def _change(
        self,
        resource: Resource,
        old: Object,
        new: Object,
        subresource: str,
        manager: str,
        dry_run: bool,
        then: Sequence[Any],
    ) -> Object:
        """Store the next state of an object, once it is reviewed."""
        check_update(resource, old, new)

        def propose(patches: Patches) -> Object:
            return self._write(resource, old, new, subresource, manager, True, patches)

        namespace = old["metadata"].get("namespace", "")
        then = then or self._review("UPDATE", resource, namespace, old, old, propose, subresource)
        return self._write(resource, old, new, subresource, manager, dry_run, then)

    def _write(
        self,
        resource: Resource,
        old: Object,
        new: Object,
        subresource: str,
        manager: str | None,
        dry_run: bool,
        then: Sequence[Any] = (),
    ) -> Object:
        """Admit and store the next state of an object. Without a manager, its managedFields are complete already."""
        metadata = _kept(old["metadata"], new["metadata"])
        new = {**new, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        new = admit_update(resource, old, _completed(resource, new), subresource, self)
        for patch in then:
            new = admit_update(resource, old, _completed(resource, dict(json_patch(new, patch))), subresource, self)
        _check_custom(resource, new, old)
        if resource is CUSTOM_RESOURCE_DEFINITIONS and not subresource:
            new = with_established(new, self.stamps.now())
        if manager is not None:
            new = track(resource, old, new, manager=manager, subresource=subresource, now=self.stamps.now())
        if new == old:
            return old
        if is_deletion_finished(resource, new):
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
        then: Sequence[Any],
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
        given_object = {**applied, "metadata": given}
        new = dict(apply(resource, live, given_object, manager=manager, force=force, now=now, subresource=subresource))
        if live is None:
            return self._create(resource, namespace, new, None, dry_run, then)
        new["metadata"] = metadata_of(new)
        check_update(resource, live, new)
        return self._write(resource, live, new, subresource, None, dry_run, then)

    def _name(self, resource: Resource, namespace: str, metadata: Object) -> None:
        if metadata.get("name"):
            return
        base = metadata.get("generateName")
        if not base or not isinstance(base, str):
            required = Mistake(
                "metadata.name", "Required value: name or generateName is required", "FieldValueRequired"
            )
            raise invalid(resource, "", [required])
        for _ in range(_NAME_ATTEMPTS):
            metadata["name"] = self.stamps.name(base)
            if self.record(resource, namespace, metadata["name"]) is None:
                return

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        record = self.record(NAMESPACES, "", namespace)
        if record is None:
            raise not_found(NAMESPACES, namespace)
        if (record.object.get("status") or {}).get("phase") == "Terminating":
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

    def _forget(self, definition: str) -> None:
        resources = self.catalog.forget(definition)
        for record in list(self.store.table(definition).ordered()) if resources else ():
            metadata = record.object["metadata"]
            self.store.remove(definition, metadata.get("namespace", ""), metadata["name"])

    def _empty(self, namespace: str) -> None:
        """Delete everything in a namespace that is terminating; with its last object the namespace is removed."""
        for resource in self.catalog.all():
            if resource.namespaced and "delete" in resource.verbs:
                for record in self.records(resource, namespace):
                    if self.record(resource, namespace, record.object["metadata"]["name"]) is not None:
                        self.delete(resource, namespace, record.object["metadata"]["name"], propagation="Background")
        self._finish_namespace(namespace)

    def _finish_namespace(self, name: str) -> None:
        """Remove a terminating namespace that is empty."""
        record = self.record(NAMESPACES, "", name)
        if record is None or "deletionTimestamp" not in record.object["metadata"]:
            return
        if any(self.store.table(table).namespaces.get(name) for table in self._namespaced_tables()):
            return
        spec = record.object.get("spec") or {}
        others = [finalizer for finalizer in spec.get("finalizers") or () if finalizer != "kubernetes"]
        finalized = {**record.object, "spec": {**spec, "finalizers": others}}
        if is_deletion_finished(NAMESPACES, finalized):
            self.store.remove(table_of(NAMESPACES), "", name)
        elif others != spec.get("finalizers"):
            self._put(NAMESPACES, finalized, False)

    def _namespaced_tables(self) -> set[str]:
        return {table_of(resource) for resource in self.catalog.all() if resource.namespaced}


def _completed(resource: Resource, obj: Object) -> Object:
    """A custom resource without unknown fields, with the defaults of its schema; anything else as it is."""
    schema = custom_schema(resource)
    return obj if schema is None else schema.completed(obj)


def _check_custom(resource: Resource, new: Object, old: Object | None) -> None:
    """Refuse a custom resource that its schema refuses, and a definition whose rules are no CEL."""
    mistakes = Mistakes()
    if (schema := custom_schema(resource)) is not None:
        schema.check(new, old, mistakes)
    elif resource is CUSTOM_RESOURCE_DEFINITIONS:
        check_definition(new, mistakes)
    mistakes.raise_for(resource, new)


def apply_patch(resource: Resource, obj: Object, patch: Any, kind: PatchKind) -> Object:
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
    """The metadata of an update: fields that only the server sets stay as they were."""
    metadata = {key: value for key, value in new.items() if key not in _FIXED and key != "selfLink"}
    for key in (*_FIXED, "namespace"):
        if key in old:
            metadata[key] = old[key]
    return metadata

"""Namespaces: the certificate authority that each one gets, and the conditions of those that are being deleted."""

from __future__ import annotations

from collections import Counter

from kubesched.api import kinds
from kubesched.api.kinds import Object
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.catalog import table_of
from kubesched_sandbox.api.conditions import condition, is_terminating, with_conditions
from kubesched_sandbox.reconcilers.reconciler import MANAGER, ObjectReconciler

_ROOT_AUTHORITY = "kube-root-ca.crt"


class RootAuthorities(ObjectReconciler):
    """Publishes the certificate authority of the API server in every namespace; it is empty without TLS."""

    def __init__(self, api: Api, authority: str) -> None:
        super().__init__(api, kinds.NAMESPACES, kinds.CONFIG_MAPS)
        self._data = {"ca.crt": authority}

    def observe(self, event: ApiEvent) -> None:
        metadata = event.object["metadata"]
        if event.resource is kinds.NAMESPACES:
            self.queue.add(("", metadata["name"]))
        elif metadata["name"] == _ROOT_AUTHORITY:
            self.queue.add(("", metadata["namespace"]))

    def sync_object(self, namespace: Object, now: float) -> float | None:
        name = namespace["metadata"]["name"]
        published = self.api.find(kinds.CONFIG_MAPS, name, _ROOT_AUTHORITY)
        if is_terminating(namespace):
            return None
        if published is None:
            new = {"metadata": {"name": _ROOT_AUTHORITY}, "data": self._data}
            self.api.create(kinds.CONFIG_MAPS, name, new, manager=MANAGER)
        elif published.get("data") != self._data:
            changed = {**published, "data": self._data}
            self.api.update(kinds.CONFIG_MAPS, name, _ROOT_AUTHORITY, changed, manager=MANAGER)
        return None


_LOOK_AGAIN = 5.0
_WITHOUT_FAILURE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class TerminatingNamespaces(ObjectReconciler):
    """Says in the conditions of a namespace that is being deleted which objects and finalizers keep it."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, kinds.NAMESPACES)

    def sync_object(self, namespace: Object, now: float) -> float | None:
        if not is_terminating(namespace):
            return None
        status = namespace["status"]
        new = [condition(kind, "False", reason, message) for kind, reason, message in _WITHOUT_FAILURE]
        new += self._remaining(namespace["metadata"]["name"])
        conditions = with_conditions(status.get("conditions") or [], new, self.api.stamps.now())
        self.write_status(kinds.NAMESPACES, namespace, {**status, "conditions": conditions})
        return now + _LOOK_AGAIN

    def _remaining(self, namespace: str) -> list[Object]:
        objects, finalizers = Counter[str](), Counter[str]()
        by_table = {table_of(resource): resource for resource in self.api.catalog.all() if resource.namespaced}
        for resource in by_table.values():
            for record in self.api.records(resource, namespace):
                objects[f"{resource.plural}.{resource.group}"] += 1
                finalizers.update(record.object["metadata"].get("finalizers") or ())
        content = condition("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed")
        if objects:
            counts = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(objects.items()))
            why = f"Some resources are remaining: {counts}"
            content = condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", why)
        done = "All content-preserving finalizers finished"
        held = condition("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", done)
        if finalizers:
            counts = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
            why = f"Some content in the namespace has finalizers remaining: {counts}"
            held = condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", why)
        return [content, held]

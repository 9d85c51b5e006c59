"""The API as plain calls: each is one atomic step, and raises an ApiError where a server would answer with one."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, NODES, POD_DISRUPTION_BUDGETS, PODS, Object, Resource
from kubesched.sandbox.api import binding as bindings
from kubesched.sandbox.api import custom
from kubesched.sandbox.api import eviction as evictions
from kubesched.sandbox.api.options import DeleteOptions
from kubesched.sandbox.api.preconditions import check_delete, check_update, metadata_of
from kubesched.sandbox.api.scale import WORKLOAD, ScalePaths, custom_paths, scale_of, scaled
from kubesched.sandbox.api.writing import PatchKind, Writing, patched


class Api(Writing):
    """Objects with everything that Kubernetes promises about them. Single-threaded, synchronous."""

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

"""The API server without HTTP: what Kubernetes guarantees about objects, as calls.

Each call is one atomic step, and raises an ApiError where a server would answer with one.
"""

from __future__ import annotations

from typing import Any

from kubesched.api import kinds
from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object, Resource
from kubesched.api.well_known import DEFAULT_STORAGE_CLASS, SYSTEM_PRIORITY_CLASSES
from kubesched_sandbox.api import subresources
from kubesched_sandbox.api.catalog import version_of
from kubesched_sandbox.api.conditions import with_condition
from kubesched_sandbox.api.reading import ApiEvent, DeleteOptions, check_delete, check_update, metadata_of
from kubesched_sandbox.api.selecting import ListSelector, selection
from kubesched_sandbox.api.stamps import Stamps
from kubesched_sandbox.api.subresources import WORKLOAD, ScalePaths, custom_paths, scale_of, with_replicas
from kubesched_sandbox.api.writing import PatchKind, Writing, apply_patch

__all__ = ["Api", "ApiEvent", "ListSelector", "PatchKind", "Stamps", "bootstrap", "selection"]


class Api(Writing):
    """Objects with everything that Kubernetes guarantees about them. Single-threaded, synchronous."""

    def bind(self, namespace: str, name: str, binding: Object, *, dry_run: bool = False) -> None:
        """Assign a pod to a node, once."""
        target = subresources.target_of(name, binding)
        pod = self.get(kinds.PODS, namespace, name)
        subresources.check_binding(pod, binding)
        node = self.find(kinds.NODES, "", target)
        self._put(kinds.PODS, subresources.with_node(pod, binding, node, target, self.stamps.now()), dry_run)

    def evict(self, namespace: str, name: str, eviction: Object, *, dry_run: bool = False) -> None:
        """Delete a pod if its disruption budget allows."""
        given = metadata_of(eviction)
        if given.get("name", name) != name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = DeleteOptions.read(eviction.get("deleteOptions"))
        pod = self.get(kinds.PODS, namespace, name)
        check_delete(kinds.PODS, pod, options.uid, options.resource_version)
        if not subresources.needs_no_budget(pod):
            self._charge(pod, dry_run or options.dry_run)
        if dry_run or options.dry_run:
            return
        status = pod.get("status") or {}
        conditions = with_condition(status.get("conditions") or [], subresources.EVICTED, self.stamps.now())
        self._put(kinds.PODS, {**pod, "status": {**status, "conditions": conditions}}, False)
        self.delete(kinds.PODS, namespace, name, grace=options.grace, propagation=options.propagation)

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
        new = self._write(resource, old, with_replicas(resource, old, scale, paths), "scale", manager, dry_run)
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
        # A Scale has no lists, so a strategic merge patch does what a merge patch does.
        kind = PatchKind.MERGE if kind in (PatchKind.STRATEGIC, PatchKind.APPLY) else kind
        new = apply_patch(resource, scale, patch, kind)
        return self.update_scale(resource, namespace, name, new, manager=manager, dry_run=dry_run)

    def _charge(self, pod: Object, dry_run: bool) -> None:
        namespace = pod["metadata"]["namespace"]
        budget = subresources.budget_of(pod, self.select(kinds.POD_DISRUPTION_BUDGETS, namespace))
        if budget is None or subresources.may_go_unhealthy(pod, budget):
            return
        self._put(
            kinds.POD_DISRUPTION_BUDGETS,
            subresources.charge_budget(budget, pod["metadata"]["name"], self.stamps.now()),
            dry_run,
        )

    def _scale_paths(self, resource: Resource) -> ScalePaths:
        definition = self.find(kinds.CUSTOM_RESOURCE_DEFINITIONS, "", resource.qualified)
        return WORKLOAD if definition is None else custom_paths(version_of(definition, resource.version))


SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}

_STANDARD = {
    "metadata": {"name": "standard", "annotations": {DEFAULT_STORAGE_CLASS: "true"}},
    "provisioner": "kubesched.io/hollow",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}
"""The default class: volumes that are made when a pod needs them, and that every node can use."""


def bootstrap(api: Api, *, authority: str = "", port: int = 443) -> None:
    """Create what is missing, and from now on give every namespace its service account.

    A server that was restarted finds its objects and creates only what was deleted.
    """
    _follow_namespaces(api)
    for name in SYSTEM_NAMESPACES:
        _ensure(api, kinds.NAMESPACES, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITY_CLASSES.items():
        named = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        _ensure(api, kinds.PRIORITY_CLASSES, "", named)
    _ensure(api, kinds.STORAGE_CLASSES, "", _STANDARD)
    _ensure(api, kinds.SERVICES, "default", _kubernetes_service(port))
    # What components with delegated authentication read first.
    authentication = {"metadata": {"name": "extension-apiserver-authentication"}, "data": {"client-ca-file": authority}}
    _ensure(api, kinds.CONFIG_MAPS, "kube-system", authentication)


def _kubernetes_service(port: int) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    spec = {"type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports}
    return {"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec}


def _follow_namespaces(api: Api) -> None:
    def furnish(event: ApiEvent) -> None:
        metadata = event.object["metadata"]
        if event.type != "ADDED" or "deletionTimestamp" in metadata:
            return
        _ensure(api, kinds.SERVICE_ACCOUNTS, metadata["name"], {"metadata": {"name": "default"}})

    api.subscribe((kinds.NAMESPACES,), furnish)


def _ensure(api: Api, resource: Resource, namespace: str, obj: Object) -> None:
    if api.find(resource, namespace, obj["metadata"]["name"]) is None:
        api.create(resource, namespace, obj, manager="kube-apiserver")

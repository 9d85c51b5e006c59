"""A real API server as a test sees it: objects as JSON, and waiting for what a scheduler makes of them."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from bench.peer.control_plane import ADMIN, ControlPlane
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import BUILT_IN, EVENTS, NODES, PODS, Object, Resource

NAMESPACE = "default"


class RealCluster:
    """Everything that a test creates is gone after it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._context = ssl.create_default_context(cafile=str(plane.access.authority))
        self._made: list[tuple[Resource, str, str]] = []

    def ask(self, method: str, path: str, body: Object | None = None, content: str = "application/json") -> Any:
        """The answer as JSON. Raises urllib.error.HTTPError."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plane.access.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return json.loads(answer.read())

    def create(
        self, api_version: str, kind: str, name: str, *, resource: Resource | None = None, **fields: Any
    ) -> Object:
        """The resource need not be given for what v1.36 has."""
        resource = resource or BUILT_IN[api_version, kind]
        namespace = NAMESPACE if resource.namespaced else ""
        metadata = {"name": name, **fields.pop("metadata", {})}
        obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        made: Object = self.ask("POST", resource.path_of(namespace=metadata.get("namespace", namespace)), obj)
        self._made.append((resource, made["metadata"].get("namespace", ""), name))
        return made

    def add_node(self, name: str, cpu: str = "4", *, offered: dict[str, str] | None = None, **more: Any) -> None:
        """More are labels, and fields of its spec."""
        capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110", **(offered or {})}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
        labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
        self.create("v1", "Node", name, metadata={"labels": labels}, status=status, spec=more)

    def add_pod(self, name: str, cpu: str = "100m", *, limits: dict[str, str] | None = None, **spec: Any) -> None:
        resources: Object = {"requests": {"cpu": cpu}} | ({"limits": limits} if limits else {})
        container = {"name": "main", "image": "app:1", "resources": resources | spec.pop("resources", {})}
        labels = {"app": name.rpartition("-")[0] or name}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
        self.create("v1", "Pod", name, metadata={"labels": labels}, spec=spec)

    def add_gpu_class(self) -> None:
        spec = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}
        self.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)

    def offer_gpus(self, node: str, *devices: str, slice_name: str = "", generation: int = 1) -> None:
        """As the driver on the node does, in one slice."""
        spec = {
            "driver": "gpu.example.com",
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": device} for device in devices],
        }
        self.create("resource.k8s.io/v1", "ResourceSlice", slice_name or node, spec=spec)

    def get(self, resource: Resource, name: str) -> Object:
        obj: Object = self.ask("GET", resource.path_of(namespace=NAMESPACE if resource.namespaced else "", name=name))
        return obj

    def list(self, resource: Resource) -> list[Object]:
        items: list[Object] = self.ask("GET", resource.path)["items"]
        return items

    def patch(self, resource: Resource, name: str, change: Object, subresource: str = "") -> None:
        path = resource.path_of(namespace=NAMESPACE if resource.namespaced else "", name=name, subresource=subresource)
        self.ask("PATCH", path, change, "application/merge-patch+json")

    def delete(self, resource: Resource, name: str) -> None:
        path = resource.path_of(namespace=NAMESPACE if resource.namespaced else "", name=name)
        self.ask("DELETE", path, {"gracePeriodSeconds": 0})

    def node_of(self, pod: str) -> str:
        """Empty while it has none."""
        node: str = self.get(PODS, pod)["spec"].get("nodeName", "")
        return node

    def wait_bound(self, pod: str) -> str:
        return str(wait_until(lambda: self.node_of(pod), f"{pod} bound", within=60))

    def wait_all_bound(self, within: float = 120) -> dict[str, str]:
        """The node of each pod."""

        def nodes() -> dict[str, str]:
            return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.list(PODS)}

        wait_until(lambda: all(nodes().values()), "all pods bound", within=within)
        return nodes()

    def wait_rejected(self, pod: str) -> str:
        """Why it waits."""

        def message() -> str:
            conditions = self.get(PODS, pod).get("status", {}).get("conditions", [])
            return next((str(each["message"]) for each in conditions if each.get("status") == "False"), "")

        return str(wait_until(message, f"{pod} rejected", within=60))

    def reasons(self, pod: str) -> set[str]:
        """Of the Events about a pod."""
        return {event["reason"] for event in self.list(EVENTS) if event["regarding"].get("name") == pod}

    def clear(self) -> None:
        """Pods first: others are in use by them."""
        for pod in self.list(PODS):
            path = PODS.path_of(namespace=pod["metadata"]["namespace"], name=pod["metadata"]["name"])
            self._try("DELETE", path, {"gracePeriodSeconds": 0})
        for resource, namespace, name in reversed(self._made):
            if resource is not PODS:
                path = resource.path_of(namespace=namespace, name=name)
                self._try("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
                self._try("DELETE", path, {"gracePeriodSeconds": 0})
        self._made.clear()
        wait_until(lambda: not self.list(PODS) and not self.list(NODES), "an empty cluster", within=30)

    def _try(self, *request: Any) -> None:
        try:
            self.ask(*request)
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in (404, 409):
                    raise

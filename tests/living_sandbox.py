"""A whole sandbox without a wire: controllers, hollow nodes and a trivial scheduler, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.sandbox_server import fresh_api

from kubesched.api.kinds import CORE_EVENTS, DEPLOYMENTS, NODES, PODS, Object, Resource
from kubesched.api.release import V1_36, Release
from kubesched.controllers.pod_templates import target_of
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.reconcilers import Dispatch, Reconciler, standard_reconcilers

START = 1_800_000_000.0
CONTAINER = {"name": "app", "image": "nginx"}


class RoundRobin:
    """Binds every pod to the next node that is ready and not cordoned; a daemon's pod to its own node."""

    watches: tuple[Resource, ...] = (PODS, NODES)

    def __init__(self, api: Api) -> None:
        self._api = api
        self._pending: dict[tuple[str, str], None] = {}
        self._turn = 0

    def observe(self, event: ApiEvent) -> None:
        if event.resource is PODS:
            key = (event.object["metadata"]["namespace"], event.object["metadata"]["name"])
            waits = not event.object["spec"].get("nodeName") and "deletionTimestamp" not in event.object["metadata"]
            if event.type != "DELETED" and waits:
                self._pending[key] = None
            else:
                self._pending.pop(key, None)

    def reconcile(self, now: float) -> float | None:
        if not self._pending:
            return None
        nodes = [node for node in self._api.select(NODES) if not (node.get("spec") or {}).get("taints")]
        for key in list(self._pending)[:100]:
            pod = self._api.get(PODS, *key)
            target = target_of(pod)
            if target is None and nodes:
                self._turn += 1
                target = nodes[self._turn % len(nodes)]["metadata"]["name"]
            if target is not None:
                self._api.bind(*key, {"target": {"kind": "Node", "name": target}})
        return now if self._pending and nodes else None


class LivingSandbox:
    """Time passes only when `run` says so."""

    def __init__(
        self,
        nodes: int | Sequence[Object] = 3,
        *,
        seed: int = 1,
        binder: bool = True,
        node_grace: float = 50.0,
        job_groups: bool = False,
        release: Release = V1_36,
    ) -> None:
        self.now = START
        self.api = fresh_api(clock=lambda: self.now, seed=seed, release=release)
        self.hollow = HollowNodes(self.api, random.Random(seed))
        self.hollow.add(node_manifests(nodes))
        controllers = standard_reconcilers(self.api, node_grace=node_grace, job_groups=job_groups)
        everyone: list[Reconciler] = [*controllers, self.hollow]
        if binder:
            everyone.append(RoundRobin(self.api))
        self.dispatch = Dispatch(self.api, everyone)
        self.settle()

    def settle(self) -> None:
        """Let everything happen that happens at this moment."""
        self.dispatch.settle(self.now)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while True:
            self.settle()
            due = self.dispatch.next_due()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
        self.now = end
        self.settle()

    # -- what tests read ----------------------------------------------------------------------------------------------

    def pods(self, labels: str | None = None, namespace: str = "default") -> list[Object]:
        return self.api.select(PODS, namespace, labels=labels)

    def running(self, labels: str | None = None) -> list[Object]:
        return [p for p in self.pods(labels) if p["status"]["phase"] == "Running" and is_live(p)]

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        return self.api.get(resource, namespace if resource.namespaced else "", name)

    def create(self, resource: Resource, obj: Object, namespace: str = "default") -> Object:
        created = self.api.create(resource, namespace if resource.namespaced else "", obj)
        self.settle()
        return created

    def change(self, resource: Resource, name: str, patch: Object, namespace: str = "default") -> Object:
        changed = self.api.patch(resource, namespace if resource.namespaced else "", name, patch)
        self.settle()
        return changed

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self.api.delete(resource, "default" if resource.namespaced else "", name, **options)
        self.settle()

    def reasons(self, name: str) -> list[str]:
        """The reasons of the events about an object, and of the same text only once."""
        events = self.api.select(CORE_EVENTS)
        return [each["reason"] for each in events if each["involvedObject"]["name"] == name]

    def messages(self, name: str) -> list[str]:
        events = self.api.select(CORE_EVENTS)
        return [each["message"] for each in events if each["involvedObject"]["name"] == name]


def is_live(obj: Object) -> bool:
    return "deletionTimestamp" not in obj["metadata"]


def pod(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}}


def template(app: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [CONTAINER], **spec}}


def workload(name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    """A Deployment, ReplicaSet or StatefulSet, by where it is created."""
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template(name), **spec},
    }


def with_image(image: str) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}


def deployment(cluster: LivingSandbox, name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    return cluster.create(DEPLOYMENTS, workload(name, replicas, **spec))

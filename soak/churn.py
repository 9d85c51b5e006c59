"""What people and machines do to a cluster all day: pods, workloads and nodes come, change and go, at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEPLOYMENTS, NODES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIM_TEMPLATES, Object, Resource
from kubesched_sandbox.nodes.manifests import DRIVER, DURATION, node_manifest

NODES_KEPT = 40
APPS = 8
MOST_PODS = 500
GPUS = 2
"""Of each node."""
FITS_NOWHERE = "soak.kubesched.io/fits-nowhere"
"""A label of pods that must never be placed."""
_NAMESPACE = "default"
_REPLICAS_AT_REST = 15
_TAINT = {"key": "soak", "value": "yes", "effect": "NoSchedule"}


class ChurnedApi(Protocol):
    """What is needed of an API server, whichever it is. Refusals are ApiErrors."""

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object: ...

    def patch(self, resource: Resource, namespace: str, name: str, patch: Any) -> Object: ...

    def delete(self, resource: Resource, namespace: str, name: str, *, grace: int | None = None) -> Any: ...

    def select(self, resource: Resource, *, labels: str | None = None) -> list[Object]: ...


class Churn:
    """Each step changes one thing. The same seed makes the same steps."""

    def __init__(self, api: ChurnedApi, add_node: Callable[[Object], None], rng: random.Random) -> None:
        """`add_node` registers a node with its GPUs."""
        self._api, self._register, self._rng = api, add_node, rng
        self._made = 0
        self._steps: list[tuple[int, Callable[[], None]]] = [
            (50, self._create_pod),
            (20, self._delete_pod),
            (15, self._scale),
            (4, self._cordon_or_not),
            (4, self._taint_or_not),
            (4, self._label_node),
            (2, self._replace_node),
            (8, self._create_with_gpu),
            (2, self._create_big_and_important),
            (2, self._create_that_fits_nowhere),
        ]

    def begin(self) -> None:
        """The cluster before anything happens."""
        self._api.create(PRIORITY_CLASSES, "", {"metadata": {"name": "important"}, "value": 1000})
        gpu = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}
        template = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": gpu}}}
        self._api.create(RESOURCE_CLAIM_TEMPLATES, _NAMESPACE, template)
        for _ in range(NODES_KEPT):
            self._add_node()
        for i in range(APPS):
            name = f"app-{i}"
            labels = {"app": name}
            template = {"metadata": {"labels": labels}, "spec": self._spec(i)}
            spec = {"replicas": 10, "selector": {"matchLabels": labels}, "template": template}
            self._api.create(DEPLOYMENTS, _NAMESPACE, {"metadata": {"name": name}, "spec": spec})

    def step(self) -> None:
        weights = [weight for weight, _ in self._steps]
        ((_, act),) = self._rng.choices(self._steps, weights)
        try:
            act()
        except ApiError as error:
            # Controllers and the scheduler act too: what was chosen may be gone or changed by now.
            if error.code not in (404, 409):
                raise

    def rest(self) -> None:
        """Leave the cluster so that everything fits again but what fits nowhere."""
        for node in self._api.select(NODES):
            self._patch_node(node, {"spec": {"unschedulable": None, "taints": None}})
        for i in range(APPS):
            self._scale_to(f"app-{i}", _REPLICAS_AT_REST)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _create_pod(self) -> None:
        if len(self._api.select(PODS)) < MOST_PODS:
            seconds = self._rng.choice((5, 20, 60))
            self._create("task", self._spec(self._rng.randrange(APPS)), {DURATION: f"{seconds}s"})

    def _create_with_gpu(self) -> None:
        seconds = self._rng.choice((5, 20, 60))
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        spec = {"resourceClaims": claims, "containers": [_container("100m", "256Mi")]}
        self._create("training", spec, {DURATION: f"{seconds}s"})

    def _create_big_and_important(self) -> None:
        """Most of a node for a while: others may have to go for it."""
        spec = {"priorityClassName": "important", "containers": [_container("6", "8Gi")]}
        self._create("important", spec, {DURATION: "15s"})

    def _create_that_fits_nowhere(self) -> None:
        waiting = self._api.select(PODS, labels=FITS_NOWHERE)
        if len(waiting) >= 5:
            self._api.delete(PODS, _NAMESPACE, self._rng.choice(waiting)["metadata"]["name"])
        self._create("giant", {"containers": [_container("1000", "1Gi")]}, labels={FITS_NOWHERE: "yes"})

    def _create(
        self, kind: str, spec: Object, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None
    ) -> None:
        self._made += 1
        labels = {"app": kind, **(labels or {})}
        metadata = {"name": f"{kind}-{self._made}", "labels": labels, "annotations": annotations or {}}
        self._api.create(PODS, _NAMESPACE, {"metadata": metadata, "spec": {"restartPolicy": "Never", **spec}})

    def _delete_pod(self) -> None:
        """One at random, and all whose work is done."""
        pods = self._api.select(PODS)
        if pods:
            self._api.delete(PODS, _NAMESPACE, self._rng.choice(pods)["metadata"]["name"])
        for pod in pods:
            if pod["status"].get("phase") in ("Succeeded", "Failed") and self._rng.random() < 0.5:
                self._api.delete(PODS, _NAMESPACE, pod["metadata"]["name"], grace=0)

    def _spec(self, kind: int) -> Object:
        """Pods of several kinds: by number, so that those of one Deployment are alike."""
        spec: dict[str, Any] = {"containers": [_container(f"{100 * (1 + kind)}m", "256Mi")]}
        like = {"matchLabels": {"app": f"app-{kind}"}}
        if kind == 1:
            zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": like}
            spec["topologySpreadConstraints"] = [{**zone, "whenUnsatisfiable": "DoNotSchedule"}]
        if kind == 2:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": like}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if kind == 3:
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        return spec

    # -- workloads ----------------------------------------------------------------------------------------------------

    def _scale(self) -> None:
        self._scale_to(f"app-{self._rng.randrange(APPS)}", self._rng.randrange(30))

    def _scale_to(self, name: str, replicas: int) -> None:
        self._api.patch(DEPLOYMENTS, _NAMESPACE, name, {"spec": {"replicas": replicas}})

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _cordon_or_not(self) -> None:
        node = self._any_node()
        is_cordoned = node["spec"].get("unschedulable", False)
        self._patch_node(node, {"spec": {"unschedulable": not is_cordoned}})

    def _taint_or_not(self) -> None:
        node = self._any_node()
        others = [taint for taint in node["spec"].get("taints") or () if taint["key"] != _TAINT["key"]]
        had_it = len(others) < len(node["spec"].get("taints") or ())
        self._patch_node(node, {"spec": {"taints": others if had_it else [*others, _TAINT]}})

    def _label_node(self) -> None:
        self._patch_node(self._any_node(), {"metadata": {"labels": {"disk": self._rng.choice(("ssd", "hdd"))}}})

    def _replace_node(self) -> None:
        self._api.delete(NODES, "", self._any_node()["metadata"]["name"])
        self._add_node()

    def _add_node(self) -> None:
        self._made += 1
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "40"}
        template = {"status": {"capacity": capacity, "allocatable": capacity}}
        self._register(node_manifest(f"node-{self._made}", self._made, template))

    def _any_node(self) -> Object:
        return self._rng.choice(self._api.select(NODES))

    def _patch_node(self, node: Object, patch: Object) -> None:
        self._api.patch(NODES, "", node["metadata"]["name"], patch)


def _container(cpu: str, memory: str) -> Object:
    requests = {"cpu": cpu, "memory": memory}
    return {"name": "main", "image": "app:1", "resources": {"requests": requests}}

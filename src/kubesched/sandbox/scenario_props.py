"""What stories are made of: nodes, workloads and classes, as short as they can be said."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    SERVICES,
    Object,
)
from kubesched.api.well_known import ZONE
from kubesched.sandbox.api import Api
from kubesched.sandbox.nodes.manifests import DURATION


def node(name: str, zone: str, *, cpu: str = "8", memory: str = "32Gi", **labels: str) -> Object:
    """A template from which a hollow node is made."""
    return {
        "metadata": {"name": name, "labels": {ZONE: zone, **labels}},
        "status": {"capacity": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }


def zones(*names: str, nodes: int, **more: str) -> tuple[Object, ...]:
    """So many nodes in each of these zones: web-a1, web-a2, web-b1, ..."""
    return tuple(node(f"node-{zone}{i}", f"zone-{zone}", **more) for zone in names for i in range(1, nodes + 1))


def namespace(api: Api, name: str) -> None:
    if api.find(NAMESPACES, "", name) is None:
        api.create(NAMESPACES, "", {"metadata": {"name": name}})


def priority_class(api: Api, name: str, value: int, *, preempts: bool = True) -> None:
    policy = "PreemptLowerPriority" if preempts else "Never"
    _create_once(api, name, {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy})


def pod_template(app: str, *, cpu: str, memory: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": f"registry.example/{app}:1", "resources": {"requests": requests}}
    metadata: Object = {"labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def deployment(api: Api, space: str, app: str, replicas: int, *, cpu: str, memory: str, **spec: Any) -> None:
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "template": pod_template(app, cpu=cpu, memory=memory, **spec),
    }
    api.create(DEPLOYMENTS, space, {"metadata": {"name": app}, "spec": body})


def job(api: Api, space: str, name: str, pods: int, *, seconds: int, cpu: str, memory: str, **spec: Any) -> None:
    """All pods of the job at once, each done after so many seconds."""
    template = pod_template(
        name, cpu=cpu, memory=memory, annotations={DURATION: f"{seconds}s"}, restartPolicy="Never", **spec
    )
    body = {"parallelism": pods, "completions": pods, "backoffLimit": pods, "template": template}
    api.create(JOBS, space, {"metadata": {"name": name}, "spec": body})


def service(api: Api, space: str, app: str) -> None:
    body = {"selector": {"app": app}, "ports": [{"port": 80}]}
    api.create(SERVICES, space, {"metadata": {"name": app}, "spec": body})


def budget(api: Api, space: str, app: str, *, min_available: int | str) -> None:
    body = {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}}
    api.create(POD_DISRUPTION_BUDGETS, space, {"metadata": {"name": app}, "spec": body})


def scale(api: Api, space: str, app: str, replicas: int) -> None:
    api.patch(DEPLOYMENTS, space, app, {"spec": {"replicas": replicas}})


def label(api: Api, name: str, **labels: str) -> None:
    api.patch(NODES, "", name, {"metadata": {"labels": labels}})


def cordon(api: Api, name: str, *, on: bool = True) -> None:
    api.patch(NODES, "", name, {"spec": {"unschedulable": on or None}})


def spread(app: str, topology: str, *, hard: bool) -> Object:
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": action, "labelSelector": selector}


def near(app: str, topology: str) -> Object:
    """An affinity that prefers to be where pods of that app are."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def apart(app: str, topology: str) -> Object:
    """An affinity that insists on being where no pod of that app is."""
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _create_once(api: Api, name: str, body: Object) -> None:
    try:
        api.create(PRIORITY_CLASSES, "", body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise

"""The Scale of a workload: how many replicas it has and should have, in one shape for all kinds."""

from __future__ import annotations

from typing import Any, NamedTuple

from kubesched.admission.reading import value_at
from kubesched.api.api_error import invalid
from kubesched.api.kinds import REPLICATION_CONTROLLERS, Object, Resource
from kubesched.api.schema import Mistake

_TEXT_OPERATORS = {"In": "in", "NotIn": "notin"}


class ScalePaths(NamedTuple):
    """Where a kind keeps what a Scale shows. Without a path for it, the selector is that of the built-in workloads."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] | None = None


WORKLOAD = ScalePaths()


def custom_paths(version: Object) -> ScalePaths:
    """As one version of a CustomResourceDefinition says."""
    scale = (version.get("subresources") or {}).get("scale") or {}
    return ScalePaths(
        _steps(scale.get("specReplicasPath", ".spec.replicas")),
        _steps(scale.get("statusReplicasPath", ".status.replicas")),
        _steps(scale.get("labelSelectorPath") or ""),
    )


def scale_of(resource: Resource, obj: Object, paths: ScalePaths = WORKLOAD) -> Object:
    """The Scale of one object."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status = {"replicas": value_at(obj, *paths.status) or 0}
    selector = _selector(resource, obj) if paths.selector is None else paths.selector and value_at(obj, *paths.selector)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": value_at(obj, *paths.spec) or 0},
        "status": status,
    }


def scaled(resource: Resource, obj: Object, scale: Object, paths: ScalePaths = WORKLOAD) -> Object:
    """The object with the replicas that a Scale asks for."""
    spec = scale.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else 0
    name = obj["metadata"]["name"]
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        cause = Mistake("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
        raise invalid(resource, name, [cause])
    return _written(obj, paths.spec, replicas)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.split(".") if step)


def _written(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    if not path:
        return obj
    if len(path) == 1:
        return {**obj, path[0]: value}
    inner = obj.get(path[0])
    return {**obj, path[0]: _written(inner if isinstance(inner, dict) else {}, path[1:], value)}


def _selector(resource: Resource, obj: Object) -> str:
    selector = obj.get("spec", {}).get("selector") or {}
    if resource is REPLICATION_CONTROLLERS:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    exact = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*exact, *(_expression(entry) for entry in selector.get("matchExpressions") or ())])


def _expression(entry: Object) -> str:
    match entry["operator"]:
        case "Exists":
            return str(entry["key"])
        case "DoesNotExist":
            return f"!{entry['key']}"
        case operator:
            return f"{entry['key']} {_TEXT_OPERATORS[operator]} ({','.join(sorted(entry.get('values') or ()))})"

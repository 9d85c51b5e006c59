"""What is served: built-in resources and those that CustomResourceDefinitions add, and how stored objects are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from kubesched.admission import NEWER, served_by
from kubesched.admission.policy import CPU_AT_80
from kubesched.api.kinds import BUILT_IN, CORE_EVENTS, EVENTS, NODES, OLDER_AUTOSCALERS, PODS, Object, Resource
from kubesched.api.release import V1_36, Release
from kubesched_sandbox.api.group_versions import newer_group, newer_workload, stored_group, stored_workload

_TO_NEWER = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_OLDER = {newer: older for older, newer in _TO_NEWER.items()}


def newer_event(event: Object) -> Object:
    """As events.k8s.io/v1 shows it."""
    shown = _renamed(event, _TO_NEWER)
    shown["apiVersion"] = "events.k8s.io/v1"
    return shown


def stored_event(event: Object) -> Object:
    """As it is stored."""
    stored = _renamed(event, _TO_OLDER)
    stored["apiVersion"] = "v1"
    # core/v1 has both as required fields; a client of the older shape relies on them.
    stored.setdefault("involvedObject", {})
    stored.setdefault("source", {})
    return stored


def _renamed(event: Object, names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in event.items()}


_PREFIX = "autoscaling.alpha.kubernetes.io/"


def older_autoscaler(autoscaler: Object) -> Object:
    """As autoscaling/v1 shows it."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    metadata, notes = dict(autoscaler["metadata"]), {}
    target, others = _cpu(spec.pop("metrics", None) or [])
    current, _ = _cpu(status.pop("currentMetrics", None) or [], "current")
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    if current is not None:
        status["currentCPUUtilizationPercentage"] = current
    for name, value in (
        ("metrics", others),
        ("behavior", spec.pop("behavior", None)),
        ("conditions", status.pop("conditions", None)),
    ):
        if value:
            notes[_PREFIX + name] = msgspec.json.encode(value).decode()
    if notes:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
    shown = {**autoscaler, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec}
    return {**shown, "status": status} if "status" in autoscaler else shown


def stored_autoscaler(autoscaler: Object) -> Object:
    """As it is stored: autoscaling/v2."""
    spec, status = dict(autoscaler["spec"]), dict(autoscaler.get("status") or {})
    metadata = dict(autoscaler["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    target, current = (
        spec.pop("targetCPUUtilizationPercentage", None),
        status.pop("currentCPUUtilizationPercentage", None),
    )
    metrics = _read(annotations.pop(_PREFIX + "metrics", None)) or []
    if target is not None:
        metrics = [_cpu_metric("target", target), *metrics]
    spec["metrics"] = metrics or [CPU_AT_80]
    if behavior := _read(annotations.pop(_PREFIX + "behavior", None)):
        spec["behavior"] = behavior
    if conditions := _read(annotations.pop(_PREFIX + "conditions", None)):
        status["conditions"] = conditions
    if current is not None:
        status["currentMetrics"] = [_cpu_metric("current", current)]
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    whole = {**autoscaler, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec}
    return {**whole, "status": status} if "status" in autoscaler else whole


def _cpu(metrics: list[Object], field: str = "target") -> tuple[int | None, list[Object]]:
    """The utilization of cpu that is asked for or found, and the metrics that are something else."""
    found, others = None, []
    for metric in metrics:
        source = metric.get("resource") or {}
        share = (source.get(field) or {}).get("averageUtilization")
        if found is None and metric.get("type") == "Resource" and source.get("name") == "cpu" and share is not None:
            found = share
        else:
            others.append(metric)
    return found, others


def _cpu_metric(field: str, share: int) -> Object:
    values = {"type": "Utilization"} if field == "target" else {}
    return {"type": "Resource", "resource": {"name": "cpu", field: {**values, "averageUtilization": share}}}


def _read(text: str | None) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None


# -- the catalog ------------------------------------------------------------------------------------------------------


Shape = Callable[[Object], Object]


_READ = ("get", "list")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False, verbs=_READ)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", verbs=_READ)
METRICS = {NODE_METRICS: NODES, POD_METRICS: PODS}
"""Resources that are computed and not stored, each with the resource that it is about."""

COMPONENT_STATUSES = BUILT_IN["v1", "ComponentStatus"]
"""Deprecated, and still asked for by `kubectl get componentstatuses`."""


def component_statuses(*, schedules: bool) -> list[Object]:
    """The health of the parts of a control plane. All of them are this process, so only a scheduler can be missing."""
    healthy = {"type": "Healthy", "status": "True", "message": "ok"}
    missing = {"type": "Healthy", "status": "False", "message": "this sandbox runs no scheduler of its own"}
    conditions = {"controller-manager": healthy, "etcd-0": healthy, "scheduler": healthy if schedules else missing}
    kind = {"kind": COMPONENT_STATUSES.kind, "apiVersion": COMPONENT_STATUSES.api_version}
    return [{**kind, "metadata": {"name": name}, "conditions": [state]} for name, state in conditions.items()]


class View(NamedTuple):
    """How objects of a resource are converted to and from the version that is stored."""

    shown: Shape
    stored: Shape


class Catalog:
    """The built-in resources and those that CustomResourceDefinitions add."""

    def __init__(self, release: Release = V1_36) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._views: dict[str, View] = {
            EVENTS.path: View(newer_event, stored_event),
            OLDER_AUTOSCALERS.path: View(older_autoscaler, stored_autoscaler),
            NEWER[0].path: View(newer_group, stored_group),
            NEWER[1].path: View(newer_workload, stored_workload),
        }
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self.edition = 0
        """Grows whenever the resources change."""
        for resource in (*served_by(release), *METRICS, COMPONENT_STATUSES):
            self._resources[_key(resource)] = resource

    def all(self) -> tuple[Resource, ...]:
        return tuple(self._resources.values())

    def lookup(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def is_custom(self, resource: Resource) -> bool:
        return f"{resource.plural}.{resource.group}" in self._custom

    def view(self, resource: Resource) -> View | None:
        """None when what is stored is what is shown."""
        return self._views.get(resource.path)

    def define(self, definition: Object) -> None:
        """Serve what a CustomResourceDefinition says, in place of what it said before."""
        name = definition["metadata"]["name"]
        self.forget(name)
        # A definition of the same name does not replace what is built in.
        resources = tuple(resource for resource in resources_of(definition) if _key(resource) not in self._resources)
        self._custom[name] = resources
        storage = storage_version(definition)
        for resource in resources:
            self._resources[_key(resource)] = resource
            if len(resources) > 1 or resource.api_version != storage:
                self._views[resource.path] = View(_relabelled(resource.api_version), _relabelled(storage))
        self.edition += 1

    def forget(self, name: str) -> tuple[Resource, ...]:
        """Serve the resources of a definition no longer."""
        resources = self._custom.pop(name, ())
        for resource in resources:
            self._resources.pop(_key(resource), None)
            self._views.pop(resource.path, None)
        self.edition += 1
        return resources


def table_of(resource: Resource) -> str:
    """The table of a resource. All versions share one, and so do the two shapes of events."""
    if not resource.group:
        return resource.plural
    return CORE_EVENTS.plural if resource is EVENTS else f"{resource.plural}.{resource.group}"


def _key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def _relabelled(api_version: str) -> Shape:
    return lambda obj: {**obj, "apiVersion": api_version}


def resources_of(definition: Object) -> tuple[Resource, ...]:
    """One resource for every version that is served."""
    spec = definition["spec"]
    names = _accepted_names(spec)
    return tuple(
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope", "Namespaced") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            singular=names["singular"],
            schema=_schema_of(version),
            selectable_fields=tuple(
                field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()
            ),
        )
        for version in spec["versions"]
        if version.get("served", True)
    )


def _schema_of(version: Object) -> bytes:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return msgspec.json.encode(schema, order="sorted") if schema else b""


def storage_version(definition: Object) -> str:
    """The apiVersion under which objects are stored."""
    spec = definition["spec"]
    name = next((version["name"] for version in spec["versions"] if version.get("storage")), None)
    return f"{spec['group']}/{name or spec['versions'][0]['name']}"


def version_of(definition: Object, version: str) -> Object:
    """What a definition says of one of its versions."""
    found: Object = next(entry for entry in definition["spec"]["versions"] if entry["name"] == version)
    return found


def with_established(definition: Object, now: str) -> Object:
    """The definition with its names filled in, and the status of one that is served."""
    spec = definition["spec"]
    names = _accepted_names(spec)
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    known = definition.get("status") or {}
    before = known.get("storedVersions") or []
    status = {
        "conditions": known.get("conditions")
        or [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": names,
        "storedVersions": [*before, *(name for name in stored if name not in before)],
    }
    spec = {**spec, "names": names, "scope": spec.get("scope", "Namespaced")}
    spec.setdefault("conversion", {"strategy": "None"})
    return {**definition, "spec": spec, "status": status}


def _accepted_names(spec: Object) -> Object:
    names = dict(spec["names"])
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    return names


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}

"""What rules over pods: PriorityClasses, PodDisruptionBudgets, PodGroups, Workloads, autoscalers; and Leases."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from kubesched.admission import names
from kubesched.admission.reading import ensure_mapping, fill, mapping, metadata_of, name_of, sequence, text
from kubesched.admission.rules import Mistakes, Reader, Rules
from kubesched.admission.selectors import check_optional_selector
from kubesched.admission.workloads import check_share
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import POD_GROUPS, PRIORITY_CLASSES, WORKLOADS, Object
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES

_HIGHEST = 1_000_000_000
_SYSTEM = "system-"


def _refuse_second_default(priority_class: Object, reader: Reader) -> None:
    if priority_class.get("globalDefault") is not True:
        return
    for other in reader.select(PRIORITY_CLASSES):
        if other.get("globalDefault") is True and name_of(other) != name_of(priority_class):
            why = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASSES, name_of(priority_class), why)


def _check_priority_class(priority_class: Object, mistakes: Mistakes) -> None:
    name, value = text(metadata_of(priority_class), "name"), priority_class.get("value") or 0
    if name.startswith(_SYSTEM):
        if SYSTEM_PRIORITY_CLASSES.get(name) != value:
            why = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error: "
            if name in SYSTEM_PRIORITY_CLASSES:
                why += f"value of {name} PriorityClass must be {SYSTEM_PRIORITY_CLASSES[name]}"
            else:
                why += f"{name} is not a known system priority class"
            mistakes.forbidden("metadata.name", why)
    elif value > _HIGHEST:
        mistakes.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = text(priority_class, "preemptionPolicy")
    mistakes.one_of("preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))


def _check_priority_class_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    if new.get("value") != old.get("value"):
        mistakes.forbidden("value", "may not be changed in an update.")
    mistakes.immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _check_budget(budget: Object, mistakes: Mistakes) -> None:
    spec = budget["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        mistakes.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        check_share(spec, key, "spec", mistakes)
    check_optional_selector(spec, "selector", "spec", mistakes)
    if spec.get("unhealthyPodEvictionPolicy") is not None:
        policy = text(spec, "unhealthyPodEvictionPolicy")
        mistakes.one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def _check_lease(lease: Object, mistakes: Mistakes) -> None:
    spec = mapping(lease, "spec")
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        mistakes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    mistakes.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


PRIORITY_CLASS = Rules(
    fills={"preemptionPolicy": "PreemptLowerPriority", "value": 0},
    admit=_refuse_second_default,
    check=_check_priority_class,
    check_update=_check_priority_class_update,
    counts_generations=True,
)
DISRUPTION_BUDGET = Rules(
    fills={"spec": {}},
    check=_check_budget,
    new_status=lambda _: dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0),
    counts_generations=True,
)
LEASE = Rules(check=_check_lease)


# -- groups of pods ---------------------------------------------------------------------------------------------------


PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that holds a group for as long as its pods need it."""
_MOST_TEMPLATES = 8
_MOST_CLAIMS = 4
_LOWEST = -2_147_483_648


def _admit_group(group: Object, reader: Reader) -> None:
    """A PodGroup's Workload must exist; its priority is that of its class, and a finalizer holds it for its pods."""
    _check_template_exists(group, reader)
    finalizers = sequence(group["metadata"], "finalizers")
    if PROTECTION not in finalizers:
        group["metadata"]["finalizers"] = [*finalizers, PROTECTION]
    spec = group["spec"]
    class_name = text(spec, "priorityClassName")
    if not class_name:
        return
    priority_class = reader.find(PRIORITY_CLASSES, "", class_name)
    value = SYSTEM_PRIORITY_CLASSES.get(class_name) if priority_class is None else priority_class.get("value") or 0
    if value is None:
        raise forbidden(POD_GROUPS, name_of(group), f"no PriorityClass with name {class_name} was found")
    if spec.get("priority") not in (None, value):
        why = f"priority set in the pod group ({spec['priority']}) must match the priority computed ({value})"
        raise forbidden(POD_GROUPS, name_of(group), f"{why} based on the priority class set in the spec")
    spec["priority"] = value


def _check_template_exists(group: Object, reader: Reader) -> None:
    spec = group["spec"]
    reference = mapping(spec, "workloadRef") or mapping(mapping(spec, "podGroupTemplateRef"), "workload")
    if not reference:
        return
    workload_name = text(reference, "workloadName")
    template_name = text(reference, "templateName") or text(reference, "podGroupTemplateName")
    workload = reader.find(WORKLOADS, group["metadata"].get("namespace", ""), workload_name)
    why = ""
    if workload is None:
        why = f'PodGroup rejected: Workload "{workload_name}" not found'
    elif workload["metadata"].get("deletionTimestamp"):
        why = f'PodGroup rejected: Workload "{workload_name}" is being deleted'
    elif all(text(each, "name") != template_name for each in sequence(mapping(workload, "spec"), "podGroupTemplates")):
        why = f'PodGroup rejected: PodGroupTemplate "{template_name}" not found in Workload "{workload_name}"'
    if why:
        raise forbidden(POD_GROUPS, name_of(group), why)


def _check_workload(workload: Object, mistakes: Mistakes) -> None:
    templates, path = sequence(workload["spec"], "podGroupTemplates"), "spec.podGroupTemplates"
    if not templates:
        mistakes.required(path, "must have at least one item")
    if len(templates) > _MOST_TEMPLATES:
        mistakes.too_many(path, len(templates), _MOST_TEMPLATES)
    seen: set[str] = set()
    for i, template in enumerate(templates):
        name = text(template, "name")
        mistakes.required_valid(f"{path}[{i}].name", name, names.label)
        mistakes.unique(f"{path}[{i}].name", name, seen)
        _check_spec(template, f"{path}[{i}]", mistakes)


def _check_spec(spec: Object, path: str, mistakes: Mistakes) -> None:
    policy = mapping(spec, "schedulingPolicy")
    if ("gang" in policy) == ("basic" in policy):
        mistakes.invalid(f"{path}.schedulingPolicy", policy, "must specify exactly one of: `basic`, `gang`")
    elif "gang" in policy:
        count = mapping(policy, "gang").get("minCount") or 0
        if count < 1:
            mistakes.invalid(f"{path}.schedulingPolicy.gang.minCount", count, "must be greater than or equal to 1")
    if len(sequence(mapping(spec, "schedulingConstraints"), "topology")) > 1:
        mistakes.too_many(f"{path}.schedulingConstraints.topology", 2, 1)
    claims = sequence(spec, "resourceClaims")
    if len(claims) > _MOST_CLAIMS:
        mistakes.too_many(f"{path}.resourceClaims", len(claims), _MOST_CLAIMS)
    mode = spec.get("disruptionMode")
    if not isinstance(mode, dict):
        mistakes.one_of(f"{path}.disruptionMode", mode or "Pod", ("Pod", "PodGroup"))
    elif len(mode) != 1:
        mistakes.invalid(f"{path}.disruptionMode", mode, "must specify exactly one of: `all`, `single`")
    priority = spec.get("priority")
    if priority is not None and not _LOWEST <= priority <= _HIGHEST:
        mistakes.invalid(f"{path}.priority", priority, f"must be between {_LOWEST} and {_HIGHEST}, inclusive")


def _without_gang_sizes(spec: Object) -> Object:
    if "gang" in mapping(spec, "schedulingPolicy"):
        spec = {**spec, "schedulingPolicy": {"gang": {}}}
    if templates := sequence(spec, "podGroupTemplates"):
        spec = {**spec, "podGroupTemplates": [_without_gang_sizes(template) for template in templates]}
    return spec


def _check_only_gang_sizes_change(new: Object, old: Object, mistakes: Mistakes) -> None:
    mistakes.immutable("spec", _without_gang_sizes(new["spec"]), _without_gang_sizes(mapping(old, "spec")))


POD_GROUP = Rules(
    fills={"spec": {"disruptionMode": "Pod"}},
    admit=_admit_group,
    check=lambda group, mistakes: _check_spec(group["spec"], "spec", mistakes),
    immutable=("spec",),
    counts_generations=True,
)
NEWER_POD_GROUP = structs.replace(
    POD_GROUP, fills={"spec": {}}, immutable=(), check_update=_check_only_gang_sizes_change
)
WORKLOAD = Rules(fills={"spec": {}}, check=_check_workload, immutable=("spec",), counts_generations=True)
NEWER_WORKLOAD = structs.replace(WORKLOAD, immutable=(), check_update=_check_only_gang_sizes_change)


# -- autoscalers: of autoscaling/v2, and of autoscaling/v1, which has no metric but cpu -------------------------------


CPU_AT_80: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _fill_autoscaler(autoscaler: Object) -> None:
    spec = autoscaler["spec"]
    if not spec.get("metrics"):
        spec["metrics"] = [CPU_AT_80]
    behavior = spec.get("behavior")
    if behavior is not None:
        for direction, policies in _POLICIES.items():
            rules = ensure_mapping(behavior, direction)
            fill(rules, "selectPolicy", "Max")
            fill(rules, "policies", [dict(policy) for policy in policies])


_POLICIES: dict[str, tuple[dict[str, Any], ...]] = {
    "scaleUp": (
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ),
    "scaleDown": ({"type": "Percent", "value": 100, "periodSeconds": 15},),
}


def _check_autoscaler(autoscaler: Object, mistakes: Mistakes) -> None:
    _check_older_autoscaler(autoscaler, mistakes)
    for i, metric in enumerate(sequence(autoscaler["spec"], "metrics")):
        where, kind = f"spec.metrics[{i}]", text(metric, "type")
        mistakes.required_one_of(f"{where}.type", kind, tuple(_SOURCES))
        if kind in _SOURCES:
            mistakes.not_empty(f"{where}.{_SOURCES[kind]}", mapping(metric, _SOURCES[kind]))


def _check_older_autoscaler(autoscaler: Object, mistakes: Mistakes) -> None:
    """The fields that both versions have."""
    spec = autoscaler["spec"]
    target = mapping(spec, "scaleTargetRef")
    for key in ("kind", "name"):
        mistakes.not_empty(f"spec.scaleTargetRef.{key}", text(target, key))
    minimum, maximum = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if minimum is not None and minimum < 1:
        mistakes.invalid("spec.minReplicas", minimum, "must be greater than or equal to 1")
    if maximum < 1:
        mistakes.invalid("spec.maxReplicas", maximum, "must be greater than 0")
    elif minimum is not None and maximum < minimum:
        mistakes.invalid("spec.maxReplicas", maximum, "must be greater than or equal to `minReplicas`")


OLDER_AUTOSCALER = Rules(
    fills={"spec": {"minReplicas": 1}},
    check=_check_older_autoscaler,
    new_status=lambda _: {"currentReplicas": 0, "desiredReplicas": 0},
    counts_generations=True,
)
AUTOSCALER = structs.replace(OLDER_AUTOSCALER, defaults=_fill_autoscaler, check=_check_autoscaler)

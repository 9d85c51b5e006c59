"""Rules about PodGroups and Workloads: how pods are scheduled together, and the templates of such groups."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.metadata import name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, fill_spec, mapping, sequence, text
from kubesched.admission.rules import Reader, Rules
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import POD_GROUPS, PRIORITY_CLASSES, WORKLOADS, Object
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES

PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that holds a group for as long as its pods need it."""
_MOST_TEMPLATES = 8
_MOST_CLAIMS = 4
_PRIORITIES = (-2_147_483_648, 1_000_000_000)


def _fill_group(group: Object) -> None:
    fill_spec(group)
    fill(group["spec"], "disruptionMode", "Pod")


def _admit_group(group: Object, reader: Reader) -> None:
    """Its Workload must exist, its priority is that of its class, and it stays until its pods are gone."""
    _find_template(group, reader)
    finalizers = sequence(group["metadata"], "finalizers")
    if PROTECTION not in finalizers:
        group["metadata"]["finalizers"] = [*finalizers, PROTECTION]
    spec = group["spec"]
    wanted = text(spec, "priorityClassName")
    if not wanted:
        return
    known = reader.find(PRIORITY_CLASSES, "", wanted)
    value = SYSTEM_PRIORITY_CLASSES.get(wanted) if known is None else known.get("value") or 0
    if value is None:
        raise forbidden(POD_GROUPS, name_of(group), f"no PriorityClass with name {wanted} was found")
    if spec.get("priority") not in (None, value):
        why = f"priority set in the pod group ({spec['priority']}) must match the priority computed ({value})"
        raise forbidden(POD_GROUPS, name_of(group), f"{why} based on the priority class set in the spec")
    spec["priority"] = value


def _find_template(group: Object, reader: Reader) -> None:
    reference = mapping(mapping(group["spec"], "podGroupTemplateRef"), "workload")
    if not reference:
        return
    workload_name, template = text(reference, "workloadName"), text(reference, "podGroupTemplateName")
    workload = reader.find(WORKLOADS, group["metadata"].get("namespace", ""), workload_name)
    why = ""
    if workload is None:
        why = f'PodGroup rejected: Workload "{workload_name}" not found'
    elif workload["metadata"].get("deletionTimestamp"):
        why = f'PodGroup rejected: Workload "{workload_name}" is being deleted'
    elif all(text(each, "name") != template for each in sequence(mapping(workload, "spec"), "podGroupTemplates")):
        why = f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{workload_name}"'
    if why:
        raise forbidden(POD_GROUPS, name_of(group), why)


def _check_group(group: Object, mistakes: Mistakes) -> None:
    _check_spec(group["spec"], "spec", mistakes)


def _check_workload(workload: Object, mistakes: Mistakes) -> None:
    templates, path = sequence(workload["spec"], "podGroupTemplates"), "spec.podGroupTemplates"
    if not templates:
        mistakes.required(path, "must have at least one item")
    if len(templates) > _MOST_TEMPLATES:
        mistakes.too_many(path, len(templates), _MOST_TEMPLATES)
    seen: set[str] = set()
    for i, template in enumerate(templates):
        name = text(template, "name")
        mistakes.named(f"{path}[{i}].name", name, names.label)
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
    mistakes.one_of(f"{path}.disruptionMode", text(spec, "disruptionMode") or "Pod", ("Pod", "PodGroup"))
    priority = spec.get("priority")
    if priority is not None and not _PRIORITIES[0] <= priority <= _PRIORITIES[1]:
        lowest, highest = _PRIORITIES
        mistakes.invalid(f"{path}.priority", priority, f"must be between {lowest} and {highest}, inclusive")


POD_GROUP = Rules(
    defaults=_fill_group, admit=_admit_group, check=_check_group, immutable=("spec",), counts_generations=True
)
WORKLOAD = Rules(defaults=fill_spec, check=_check_workload, immutable=("spec",), counts_generations=True)

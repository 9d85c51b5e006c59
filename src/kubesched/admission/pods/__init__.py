"""Pods: defaults, priorities and other admission of a plain cluster, what may be written and what may change."""

from __future__ import annotations

from kubesched.admission.limits import limit_pod
from kubesched.admission.pods.scheduling import REQUIRED, merge_label_keys, tolerate_node_trouble
from kubesched.admission.pods.spec import check_pod_spec, fill_pod_spec, fill_pods_container
from kubesched.admission.reading import copy_field, ensure_mapping, fill, labels_of, mapping, name_of, sequence, text
from kubesched.admission.resources import CONTAINER_KINDS, fill_pod_level_requests, quality_of_service
from kubesched.admission.rules import Mistakes, Reader, Rules
from kubesched.api.api_error import ApiError, forbidden
from kubesched.api.kinds import PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, Object
from kubesched.api.requests import CPU, MEMORY
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES

__all__ = ["check_pod_spec", "deletion_grace", "fill_pod_spec"]

_CHANGEABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_INT32 = 2**31 - 1


def _check_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if spec == before or not _same_containers(spec, before, mistakes):
        return
    _check_deadline(spec, before, mistakes)
    _check_kept_tolerations(spec, before, mistakes)
    _check_kept_gates(spec, before, mistakes)
    rest = {**spec, **{kind: _with_old_images(spec, before, kind) for kind in CONTAINER_KINDS if kind in spec}}
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        copy_field(rest, before, key)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0:
        copy_field(rest, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        _check_tightening(rest, before, mistakes)
    if rest != before:
        mistakes.forbidden("spec", f"pod updates may not change fields other than {','.join(_CHANGEABLE)}")


def _same_containers(spec: Object, before: Object, mistakes: Mistakes) -> bool:
    for kind in CONTAINER_KINDS:
        if len(sequence(spec, kind)) != len(sequence(before, kind)):
            mistakes.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return False
    return True


def _check_deadline(spec: Object, before: Object, mistakes: Mistakes) -> None:
    field = "spec.activeDeadlineSeconds"
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            mistakes.invalid(field, None, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        mistakes.invalid(field, new, "must be less than or equal to previous value")


def _check_kept_tolerations(spec: Object, before: Object, mistakes: Mistakes) -> None:
    tolerations = [_without_seconds(toleration) for toleration in sequence(spec, "tolerations")]
    if any(_without_seconds(toleration) not in tolerations for toleration in sequence(before, "tolerations")):
        mistakes.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_kept_gates(spec: Object, before: Object, mistakes: Mistakes) -> None:
    old_gates = {text(gate, "name") for gate in sequence(before, "schedulingGates")}
    for i, gate in enumerate(sequence(spec, "schedulingGates")):
        name = text(gate, "name")
        if name not in old_gates:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            mistakes.forbidden(f"spec.schedulingGates[{i}].name", why)


def _with_old_images(spec: Object, before: Object, kind: str) -> list[Object]:
    pairs = zip(sequence(spec, kind), sequence(before, kind))
    return [{**container, "image": old.get("image")} for container, old in pairs]


def _check_tightening(spec: Object, before: Object, mistakes: Mistakes) -> None:
    """A gated pod may still get stricter node selectors and node affinity, and nothing else."""
    selector = mapping(spec, "nodeSelector")
    if not mapping(before, "nodeSelector").items() <= selector.items():
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        mistakes.invalid("spec.nodeSelector", selector, why)
    copy_field(spec, before, "nodeSelector")
    affinity, old_affinity = mapping(spec, "affinity"), mapping(before, "affinity")
    _check_affinity_tightening(mapping(affinity, "nodeAffinity"), mapping(old_affinity, "nodeAffinity"), mistakes)
    rest = dict(affinity)
    copy_field(rest, old_affinity, "nodeAffinity")
    if rest or "affinity" in before:
        spec["affinity"] = rest
    else:
        spec.pop("affinity", None)


def _check_affinity_tightening(affinity: Object, before: Object, mistakes: Mistakes) -> None:
    field = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    old = sequence(mapping(before, REQUIRED), "nodeSelectorTerms")
    new = sequence(mapping(affinity, REQUIRED), "nodeSelectorTerms")
    if old and len(old) != len(new):
        mistakes.invalid(field, new, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for i, (term, old_term) in enumerate(zip(new, old)):
        if not _only_adds(term, old_term):
            mistakes.invalid(f"{field}[{i}]", term, "only additions are allowed (no mutations or deletions)")


def _only_adds(term: Object, old_term: Object) -> bool:
    kinds = ("matchExpressions", "matchFields")
    if not any(old_term.get(kind) for kind in kinds):
        return not any(term.get(kind) for kind in kinds)  # the empty term matches nothing: more would widen it
    return all(sequence(term, kind)[: len(old)] == old for kind in kinds for old in [sequence(old_term, kind)])


# -- resizing ---------------------------------------------------------------------------------------------------------


def _resize(new: Object, old: Object, mistakes: Mistakes) -> Object:
    """A write to the subresource `resize` changes amounts of cpu and memory, and nothing else."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if not _same_containers(spec, before, mistakes):
        return old
    rest = {**spec, **{kind: _with_old_amounts(spec, before, kind) for kind in CONTAINER_KINDS if kind in spec}}
    if "resources" in before or "resources" in spec:
        rest["resources"] = _with_old_compute(mapping(spec, "resources"), mapping(before, "resources"))
        if not rest["resources"] and "resources" not in before:
            del rest["resources"]
    if rest != before:
        mistakes.forbidden("spec", "only cpu and memory resources are mutable")
    if quality_of_service(spec) != quality_of_service(before):
        why = "Pod QOS Class may not change as a result of resizing"
        mistakes.invalid("spec", text(mapping(old, "status"), "qosClass"), why)
    return {**old, "metadata": new["metadata"], "spec": spec}


def _with_old_amounts(spec: Object, before: Object, kind: str) -> list[Object]:
    pairs = zip(sequence(spec, kind), sequence(before, kind))
    return [
        {**container, "resources": _with_old_compute(mapping(container, "resources"), mapping(old, "resources"))}
        for container, old in pairs
    ]


def _with_old_compute(resources: Object, before: Object) -> Object:
    """The resources with cpu and memory as they were, for comparing the rest."""
    result = dict(resources)
    for key in ("limits", "requests"):
        amounts = dict(mapping(resources, key))
        for name in (CPU, MEMORY):
            copy_field(amounts, mapping(before, key), name)
        if amounts or key in before:
            result[key] = amounts
        else:
            result.pop(key, None)
    return result


# -- debugging --------------------------------------------------------------------------------------------------------


def _write_ephemeral_containers(new: Object, old: Object, mistakes: Mistakes) -> Object:
    """A write to the subresource `ephemeralcontainers` adds ephemeral containers, and changes nothing else."""
    field = "spec.ephemeralContainers"
    containers = sequence(mapping(new, "spec"), "ephemeralContainers")
    before = mapping(old, "spec")
    by_name = {text(container, "name"): container for container in containers}
    for i, old_container in enumerate(sequence(before, "ephemeralContainers")):
        name = text(old_container, "name")
        if name not in by_name:
            mistakes.forbidden(field, f'existing ephemeral containers "{name}" may not be removed')
        elif by_name[name] != old_container:
            mistakes.forbidden(f"{field}[{i}]", f'existing ephemeral containers "{name}" may not be changed')
    other_names = {text(container, "name") for kind in CONTAINER_KINDS for container in sequence(before, kind)}
    for i, container in enumerate(containers):
        for key in ("name", "image"):
            mistakes.not_empty(f"{field}[{i}].{key}", text(container, key))
        if text(container, "name") in other_names:
            mistakes.duplicate(f"{field}[{i}].name", text(container, "name"))
    return {**old, "metadata": new["metadata"], "spec": {**before, "ephemeralContainers": containers}}


# -- new pods ---------------------------------------------------------------------------------------------------------


_GRACE = 30


def _defaults(pod: Object) -> None:
    spec = ensure_mapping(pod, "spec")
    fill_pod_spec(spec)
    fill(spec, "enableServiceLinks", True)
    host_network = spec.get("hostNetwork") is True
    for kind in CONTAINER_KINDS:
        for container in sequence(spec, kind):
            fill_pods_container(container, host_network)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("resources"):
        fill_pod_level_requests(spec)


def _admit(pod: Object, reader: Reader) -> None:
    spec = pod["spec"]
    limit_pod(pod, reader)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        merge_label_keys(spec, labels_of(pod))
    tolerate_node_trouble(spec)
    give_priority(pod, reader)
    if name := text(spec, "runtimeClassName"):
        _apply_runtime_class(pod, reader.find(RUNTIME_CLASSES, "", name))


def _apply_runtime_class(pod: Object, runtime_class: Object | None) -> None:
    """The pod gets the overhead of its RuntimeClass, and runs on the nodes that have it."""
    spec = pod["spec"]
    if runtime_class is None:
        why = f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found'
        raise forbidden(PODS, name_of(pod), why)
    if overhead := mapping(mapping(runtime_class, "overhead"), "podFixed"):
        if spec.get("overhead") and spec["overhead"] != overhead:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise forbidden(PODS, name_of(pod), why)
        spec["overhead"] = dict(overhead)
    scheduling = mapping(runtime_class, "scheduling")
    selector, own_selector = mapping(scheduling, "nodeSelector"), mapping(spec, "nodeSelector")
    for key, value in selector.items():
        if own_selector.get(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            why += f"pod.spec.nodeSelector[{key}] = {own_selector[key]}"
            raise forbidden(PODS, name_of(pod), why)
    if selector:
        spec["nodeSelector"] = {**own_selector, **selector}
    if tolerations := sequence(scheduling, "tolerations"):
        own = sequence(spec, "tolerations")
        spec["tolerations"] = [*own, *(toleration for toleration in tolerations if toleration not in own)]


def _carry_over(pod: Object, old: Object) -> None:
    """What admission set when the pod was created stays, even if an update leaves it out."""
    spec, before = pod["spec"], mapping(old, "spec")
    for key in ("priority", "preemptionPolicy"):
        if key in before:
            fill(spec, key, before[key])
    tolerate_node_trouble(spec)


def _check_create(pod: Object, mistakes: Mistakes) -> None:
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        mistakes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        mistakes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def deletion_grace(pod: Object, requested: int | None) -> int:
    """How many seconds a pod has to end: 0 if no node runs it, or if it has ended already."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if requested is not None:
        return requested if requested >= 0 else 1
    grace = spec.get("terminationGracePeriodSeconds")
    return _GRACE if grace is None else max(grace, 0)


RULES = Rules(
    defaults=_defaults,
    admit=_admit,
    carry_over=_carry_over,
    check=lambda pod, mistakes: check_pod_spec(pod["spec"], "spec", mistakes),
    check_create=_check_create,
    check_update=_check_update,
    new_status=lambda pod: {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])},
    subresource_writes={"resize": _resize, "ephemeralcontainers": _write_ephemeral_containers},
    counts_generations=True,
)


def give_priority(pod: Object, reader: Reader) -> None:
    """Set priority and preemptionPolicy by the pod's PriorityClass. A pod that contradicts its class is refused."""
    spec = pod["spec"]
    class_name = text(spec, "priorityClassName")
    priority_class = _find_priority_class(class_name, reader) if class_name else _default_priority_class(reader)
    if priority_class is None:
        raise _refusal(pod, "priorityClassName", f"no PriorityClass with name {class_name} was found")
    value, own_value = priority_class.get("value") or 0, spec.get("priority")
    if own_value not in (None, value):
        why = f"the integer value of priority ({own_value}) must not be provided in pod spec; "
        why += f"priority admission controller computed {value} from the given PriorityClass name"
        raise _refusal(pod, "priority", why)
    policy = text(priority_class, "preemptionPolicy") or "PreemptLowerPriority"
    own_policy = text(spec, "preemptionPolicy")
    if own_policy not in ("", policy):
        why = f"the string value of PreemptionPolicy ({own_policy}) must not be provided in pod spec; "
        why += f"priority admission controller computed {policy} from the given PriorityClass name"
        raise _refusal(pod, "preemptionPolicy", why)
    spec["priority"], spec["preemptionPolicy"] = value, policy
    if name := name_of(priority_class):
        spec["priorityClassName"] = name


def _find_priority_class(name: str, reader: Reader) -> Object | None:
    priority_class = reader.find(PRIORITY_CLASSES, "", name)
    if priority_class is None and name in SYSTEM_PRIORITY_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_PRIORITY_CLASSES[name]}
    return priority_class


def _default_priority_class(reader: Reader) -> Object:
    """The class for pods that name none; of several the one with the lowest value."""
    defaults = [each for each in reader.select(PRIORITY_CLASSES) if each.get("globalDefault") is True]
    return min(defaults, key=lambda each: each.get("value") or 0, default={})


def _refusal(pod: Object, field: str, why: str) -> ApiError:
    return forbidden(PODS, name_of(pod), why, f"spec.{field}")

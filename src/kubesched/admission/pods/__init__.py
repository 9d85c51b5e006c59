"""Pods: defaults, priorities and other admission of a plain cluster, what may be written and what may change."""

from __future__ import annotations

from kubesched.admission.limits import limit_pod
from kubesched.admission.pods.scheduling import REQUIRED, merge_label_keys, tolerate_node_trouble
from kubesched.admission.pods.spec import KINDS, check_pod_spec, fill_pod_spec, fill_pods_container
from kubesched.admission.reading import ensure_mapping, fill, labels_of, mapping, metadata_of, name_of, sequence, text
from kubesched.admission.resources import quality_of_service, request_for_the_whole
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


def check_pod_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if spec == before or not _same_containers(spec, before, mistakes):
        return
    _check_deadline(spec, before, mistakes)
    _check_kept_tolerations(spec, before, mistakes)
    _check_kept_gates(spec, before, mistakes)
    rest = {**spec, **{kind: _with_old_images(spec, before, kind) for kind in KINDS if kind in spec}}
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take_back(rest, before, key)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0:
        _take_back(rest, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        _check_tightening(rest, before, mistakes)
    if rest != before:
        mistakes.forbidden("spec", f"pod updates may not change fields other than {','.join(_CHANGEABLE)}")


def _same_containers(spec: Object, before: Object, mistakes: Mistakes) -> bool:
    for kind in KINDS:
        if len(sequence(spec, kind)) != len(sequence(before, kind)):
            mistakes.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return False
    return True


def _check_deadline(spec: Object, before: Object, mistakes: Mistakes) -> None:
    field = "spec.activeDeadlineSeconds"
    new, old = (each.get("activeDeadlineSeconds") for each in (spec, before))
    if new is None:
        if old is not None:
            mistakes.invalid(field, None, "must not update from a positive integer to nil value")
    elif old is not None and new > old:
        mistakes.invalid(field, new, "must be less than or equal to previous value")


def _check_kept_tolerations(spec: Object, before: Object, mistakes: Mistakes) -> None:
    there = [_timeless(each) for each in sequence(spec, "tolerations")]
    if any(_timeless(each) not in there for each in sequence(before, "tolerations")):
        mistakes.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _timeless(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_kept_gates(spec: Object, before: Object, mistakes: Mistakes) -> None:
    known = {text(gate, "name") for gate in sequence(before, "schedulingGates")}
    for i, gate in enumerate(sequence(spec, "schedulingGates")):
        name = text(gate, "name")
        if name not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            mistakes.forbidden(f"spec.schedulingGates[{i}].name", why)


def _with_old_images(spec: Object, before: Object, kind: str) -> list[Object]:
    pairs = zip(sequence(spec, kind), sequence(before, kind))
    return [{**container, "image": old.get("image")} for container, old in pairs]


def _take_back(spec: Object, before: Object, key: str) -> None:
    """Set a field back to its old value, to leave it out of the comparison."""
    if key in before:
        spec[key] = before[key]
    else:
        spec.pop(key, None)


def _check_tightening(spec: Object, before: Object, mistakes: Mistakes) -> None:
    """A gated pod may still get stricter node selectors and node affinity, and nothing else."""
    wanted, old_wanted = mapping(spec, "nodeSelector"), mapping(before, "nodeSelector")
    if any(wanted.get(key) != value for key, value in old_wanted.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        mistakes.invalid("spec.nodeSelector", wanted, why)
    _take_back(spec, before, "nodeSelector")
    affinity, old_affinity = mapping(spec, "affinity"), mapping(before, "affinity")
    _check_affinity_tightening(mapping(affinity, "nodeAffinity"), mapping(old_affinity, "nodeAffinity"), mistakes)
    rest = dict(affinity)
    _take_back(rest, old_affinity, "nodeAffinity")
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
    for i, (term, earlier) in enumerate(zip(new, old)):
        if not _only_adds(term, earlier):
            mistakes.invalid(f"{field}[{i}]", term, "only additions are allowed (no mutations or deletions)")


def _only_adds(term: Object, earlier: Object) -> bool:
    kinds = ("matchExpressions", "matchFields")
    if not any(earlier.get(kind) for kind in kinds):
        return not any(term.get(kind) for kind in kinds)  # the empty term matches nothing: more would widen it
    for kind in kinds:
        old = sequence(earlier, kind)
        if sequence(term, kind)[: len(old)] != old:
            return False
    return True


# -- resizing ---------------------------------------------------------------------------------------------------------


def apply_resize(new: Object, old: Object, mistakes: Mistakes) -> Object:
    """The old pod with the new one's amounts of cpu and memory; nothing else may differ."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if not _same_containers(spec, before, mistakes):
        return old
    rest = {**spec, **{kind: _with_old_amounts(spec, before, kind) for kind in KINDS if kind in spec}}
    if "resources" in before or "resources" in spec:
        rest["resources"] = _old_amounts(mapping(spec, "resources"), mapping(before, "resources"))
        if not rest["resources"] and "resources" not in before:
            del rest["resources"]
    if rest != before:
        mistakes.forbidden("spec", "only cpu and memory resources are mutable")
    if quality_of_service(spec) != quality_of_service(before):
        status = mapping(old, "status")
        why = "Pod QOS Class may not change as a result of resizing"
        mistakes.invalid("spec", text(status, "qosClass"), why)
    return {**old, "metadata": new["metadata"], "spec": spec}


def _with_old_amounts(spec: Object, before: Object, kind: str) -> list[Object]:
    pairs = zip(sequence(spec, kind), sequence(before, kind))
    return [
        {**container, "resources": _old_amounts(mapping(container, "resources"), mapping(old, "resources"))}
        for container, old in pairs
    ]


def _old_amounts(resources: Object, before: Object) -> Object:
    """The resources with cpu and memory as they were, for comparing the rest."""
    result = dict(resources)
    for key in ("limits", "requests"):
        amounts = {name: each for name, each in mapping(resources, key).items() if name not in (CPU, MEMORY)}
        old = mapping(before, key)
        amounts.update({name: old[name] for name in (CPU, MEMORY) if name in old})
        if amounts or key in before:
            result[key] = amounts
        else:
            result.pop(key, None)
    return result


# -- debugging --------------------------------------------------------------------------------------------------------


def with_ephemeral_containers(new: Object, old: Object, mistakes: Mistakes) -> Object:
    """The old pod with the new one's ephemeral containers, which can only be added."""
    field = "spec.ephemeralContainers"
    there = sequence(mapping(new, "spec"), "ephemeralContainers")
    before = mapping(old, "spec")
    by_name = {text(each, "name"): each for each in there}
    for i, earlier in enumerate(sequence(before, "ephemeralContainers")):
        name = text(earlier, "name")
        if name not in by_name:
            mistakes.forbidden(field, f'existing ephemeral containers "{name}" may not be removed')
        elif by_name[name] != earlier:
            mistakes.forbidden(f"{field}[{i}]", f'existing ephemeral containers "{name}" may not be changed')
    taken = {text(each, "name") for kind in KINDS for each in sequence(before, kind)}
    for i, each in enumerate(there):
        for key in ("name", "image"):
            mistakes.not_empty(f"{field}[{i}].{key}", text(each, key))
        if text(each, "name") in taken:
            mistakes.duplicate(f"{field}[{i}].name", text(each, "name"))
    return {**old, "metadata": new["metadata"], "spec": {**before, "ephemeralContainers": there}}


# -- new pods ---------------------------------------------------------------------------------------------------------


_GRACE = 30


def _defaults(pod: Object) -> None:
    spec = ensure_mapping(pod, "spec")
    fill_pod_spec(spec)
    fill(spec, "enableServiceLinks", True)
    host_network = spec.get("hostNetwork") is True
    for kind in KINDS:
        for container in sequence(spec, kind):
            fill_pods_container(container, host_network)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("resources"):
        request_for_the_whole(spec)


def _admit(pod: Object, reader: Reader) -> None:
    spec = pod["spec"]
    limit_pod(pod, reader)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        merge_label_keys(spec, labels_of(pod), "spec")
    tolerate_node_trouble(spec)
    give_priority(pod, reader)
    if name := text(spec, "runtimeClassName"):
        _run_as(pod, reader.find(RUNTIME_CLASSES, "", name))


def _run_as(pod: Object, runtime_class: Object | None) -> None:
    """A class of runtimes brings its overhead and the nodes that have it."""
    spec = pod["spec"]
    if runtime_class is None:
        why = f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found'
        raise forbidden(PODS, name_of(pod), why)
    if overhead := mapping(mapping(runtime_class, "overhead"), "podFixed"):
        if spec.get("overhead") and spec["overhead"] != overhead:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise forbidden(PODS, name_of(pod), why)
        spec["overhead"] = dict(overhead)
    where = mapping(runtime_class, "scheduling")
    selector, own = mapping(where, "nodeSelector"), mapping(spec, "nodeSelector")
    if conflicting := [key for key in selector if own.get(key, selector[key]) != selector[key]]:
        pair = f"runtimeClass.scheduling.nodeSelector[{conflicting[0]}] = {selector[conflicting[0]]}"
        why = f"conflict: {pair}; pod.spec.nodeSelector[{conflicting[0]}] = {own[conflicting[0]]}"
        raise forbidden(PODS, name_of(pod), why)
    if selector:
        spec["nodeSelector"] = {**own, **selector}
    if tolerations := sequence(where, "tolerations"):
        held = sequence(spec, "tolerations")
        spec["tolerations"] = [*held, *(toleration for toleration in tolerations if toleration not in held)]


def _carry_over(pod: Object, old: Object) -> None:
    """What admission gave the pod when it was created stays, even if a client's copy lacks it."""
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
    """How many seconds a pod has to end; none if no node runs it, or it has ended already."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if requested is not None:
        return requested if requested >= 0 else 1
    own = spec.get("terminationGracePeriodSeconds")
    return _GRACE if own is None else max(own, 0)


RULES = Rules(
    defaults=_defaults,
    admit=_admit,
    carry_over=_carry_over,
    check=lambda pod, mistakes: check_pod_spec(pod["spec"], "spec", mistakes),
    check_create=_check_create,
    check_update=check_pod_update,
    new_status=lambda pod: {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])},
    takes={"resize": apply_resize, "ephemeralcontainers": with_ephemeral_containers},
    counts_generations=True,
)


def give_priority(pod: Object, reader: Reader) -> None:
    """Set priority and preemptionPolicy; a pod may not say otherwise than its class."""
    spec = pod["spec"]
    wanted = text(spec, "priorityClassName")
    found = _priority_class_named(wanted, reader) if wanted else _default(reader)
    if found is None:
        raise _refusal(pod, "priorityClassName", f"no PriorityClass with name {wanted} was found")
    name = text(metadata_of(found), "name")
    value = found.get("value") or 0
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        why += f"priority admission controller computed {value} from the given PriorityClass name"
        raise _refusal(pod, "priority", why)
    policy = text(found, "preemptionPolicy") or "PreemptLowerPriority"
    said = text(spec, "preemptionPolicy")
    if said and said != policy:
        why = f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
        why += f"priority admission controller computed {policy} from the given PriorityClass name"
        raise _refusal(pod, "preemptionPolicy", why)
    spec["priority"], spec["preemptionPolicy"] = value, policy
    if name:
        spec["priorityClassName"] = name


def _priority_class_named(name: str, reader: Reader) -> Object | None:
    found = reader.find(PRIORITY_CLASSES, "", name)
    if found is None and name in SYSTEM_PRIORITY_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_PRIORITY_CLASSES[name]}
    return found


def _default(reader: Reader) -> Object:
    """The class for pods that name none; of several the one with the lowest value."""
    marked = [each for each in reader.select(PRIORITY_CLASSES) if each.get("globalDefault") is True]
    return min(marked, key=lambda each: each.get("value") or 0) if marked else {}


def _refusal(pod: Object, field: str, why: str) -> ApiError:
    return forbidden(PODS, name_of(pod), why, f"spec.{field}")

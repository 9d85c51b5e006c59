"""What may change about a pod that is there: little of its spec, and its resources only by resizing."""

from __future__ import annotations

from kubesched.admission.mistakes import Mistakes
from kubesched.admission.pods.containers import KINDS
from kubesched.admission.pods.scheduling import REQUIRED
from kubesched.admission.reading import mapping, sequence, text
from kubesched.admission.resources import quality_of_service
from kubesched.api.kinds import Object
from kubesched.api.requests import CPU, MEMORY

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
    _check_tolerations(spec, before, mistakes)
    _check_gates(spec, before, mistakes)
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


def _check_tolerations(spec: Object, before: Object, mistakes: Mistakes) -> None:
    there = [_timeless(each) for each in sequence(spec, "tolerations")]
    if any(_timeless(each) not in there for each in sequence(before, "tolerations")):
        mistakes.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _timeless(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_gates(spec: Object, before: Object, mistakes: Mistakes) -> None:
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
    """Leave this field out of the comparison."""
    if key in before:
        spec[key] = before[key]
    else:
        spec.pop(key, None)


def _check_tightening(spec: Object, before: Object, mistakes: Mistakes) -> None:
    """While a pod waits for its gates, it may still become choosier about nodes."""
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


def resized(new: Object, old: Object, mistakes: Mistakes) -> Object:
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

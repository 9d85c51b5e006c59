"""The priority of new pods, as their PriorityClass gives it."""

from __future__ import annotations

from kubesched.admission.metadata import metadata_of, name_of
from kubesched.admission.reading import text
from kubesched.admission.rules import Reader
from kubesched.api.api_error import ApiError, forbidden
from kubesched.api.kinds import PODS, PRIORITY_CLASSES, Object
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES


def give_priority(pod: Object, reader: Reader) -> None:
    """Set priority and preemptionPolicy; a pod may not say otherwise than its class."""
    spec = pod["spec"]
    wanted = text(spec, "priorityClassName")
    found = _named(wanted, reader) if wanted else _default(reader)
    if found is None:
        raise _refused(pod, "priorityClassName", f"no PriorityClass with name {wanted} was found")
    name = text(metadata_of(found), "name")
    value = found.get("value") or 0
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        why += f"priority admission controller computed {value} from the given PriorityClass name"
        raise _refused(pod, "priority", why)
    policy = text(found, "preemptionPolicy") or "PreemptLowerPriority"
    said = text(spec, "preemptionPolicy")
    if said and said != policy:
        why = f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
        why += f"priority admission controller computed {policy} from the given PriorityClass name"
        raise _refused(pod, "preemptionPolicy", why)
    spec["priority"], spec["preemptionPolicy"] = value, policy
    if name:
        spec["priorityClassName"] = name


def _named(name: str, reader: Reader) -> Object | None:
    found = reader.find(PRIORITY_CLASSES, "", name)
    if found is None and name in SYSTEM_PRIORITY_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_PRIORITY_CLASSES[name]}
    return found


def _default(reader: Reader) -> Object:
    """The class for pods that name none; of several the one with the lowest value."""
    marked = [each for each in reader.select(PRIORITY_CLASSES) if each.get("globalDefault") is True]
    return min(marked, key=lambda each: each.get("value") or 0) if marked else {}


def _refused(pod: Object, field: str, why: str) -> ApiError:
    return forbidden(PODS, name_of(pod), why, f"spec.{field}")

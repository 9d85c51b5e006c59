"""The priority of new pods, as their PriorityClass gives it."""

from __future__ import annotations

from kubesched.api.kinds import PODS, PRIORITY_CLASSES, Object
from kubesched.sandbox.admission.metadata import metadata_of, name_of
from kubesched.sandbox.admission.reading import integer, text
from kubesched.sandbox.admission.rules import Reader
from kubesched.sandbox.errors import ApiError, forbidden

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every cluster has."""


def give_priority(pod: Object, reader: Reader) -> None:
    """Set priority and preemptionPolicy; a pod may not say otherwise than its class."""
    spec = pod["spec"]
    wanted = text(spec, "priorityClassName", "spec")
    found = _named(wanted, reader) if wanted else _default(reader)
    if found is None:
        raise _refused(pod, f"no PriorityClass with name {wanted} was found")
    name = text(metadata_of(found), "name", "metadata")
    value = integer(found, "value", "") or 0
    given = integer(spec, "priority", "spec")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        raise _refused(pod, why + f"priority admission controller computed {value} from the given PriorityClass name")
    policy = text(found, "preemptionPolicy", "") or "PreemptLowerPriority"
    said = text(spec, "preemptionPolicy", "spec")
    if said and said != policy:
        why = f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
        raise _refused(pod, why + f"priority admission controller computed {policy} from the given PriorityClass name")
    spec["priority"], spec["preemptionPolicy"] = value, policy
    if name:
        spec["priorityClassName"] = name


def _named(name: str, reader: Reader) -> Object | None:
    found = reader.find(PRIORITY_CLASSES, "", name)
    if found is None and name in SYSTEM_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_CLASSES[name]}
    return found


def _default(reader: Reader) -> Object:
    """The class for pods that name none; of several the one with the lowest value."""
    marked = [each for each in reader.select(PRIORITY_CLASSES) if each.get("globalDefault") is True]
    return min(marked, key=lambda each: integer(each, "value", "") or 0) if marked else {}


def _refused(pod: Object, why: str) -> ApiError:
    return forbidden(PODS, name_of(pod), why)

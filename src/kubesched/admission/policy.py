"""Rules about pods that are not pods: priorities, disruption budgets; and leases."""

from __future__ import annotations

from kubesched.admission.metadata import metadata_of, name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, fill_spec, mapping, text
from kubesched.admission.rules import Reader, Rules
from kubesched.admission.selectors import check_optional_selector
from kubesched.admission.workloads import check_share
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import PRIORITY_CLASSES, Object
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES

_HIGHEST = 1_000_000_000
_SYSTEM = "system-"


def _fill_priority_class(priority_class: Object) -> None:
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")
    fill(priority_class, "value", 0)


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
            known = f"value of {name} PriorityClass must be {SYSTEM_PRIORITY_CLASSES.get(name)}"
            words = known if name in SYSTEM_PRIORITY_CLASSES else f"{name} is not a known system priority class"
            mistakes.forbidden("metadata.name", why + words)
    elif value > _HIGHEST:
        mistakes.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = text(priority_class, "preemptionPolicy")
    mistakes.one_of("preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))


def _priority_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
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


def _new_budget_status(_: Object) -> Object:
    return {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _check_lease(lease: Object, mistakes: Mistakes) -> None:
    spec = mapping(lease, "spec")
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        mistakes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    mistakes.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


PRIORITY_CLASS = Rules(
    defaults=_fill_priority_class,
    admit=_refuse_second_default,
    check=_check_priority_class,
    check_update=_priority_stays,
    counts_generations=True,
)
DISRUPTION_BUDGET = Rules(
    defaults=fill_spec, check=_check_budget, new_status=_new_budget_status, counts_generations=True
)
LEASE = Rules(check=_check_lease)

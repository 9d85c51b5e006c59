"""Rules about pods that are not pods: priorities, disruption budgets; and leases."""

from __future__ import annotations

from kubesched.api.kinds import PRIORITY_CLASSES, Object
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import metadata_of, name_of
from kubesched.sandbox.admission.pods import SYSTEM_CLASSES
from kubesched.sandbox.admission.reading import fill, flag, integer, mapping, text
from kubesched.sandbox.admission.rules import Reader, Rules
from kubesched.sandbox.admission.selectors import check_optional_selector
from kubesched.sandbox.admission.workloads import check_share, spec_to_fill
from kubesched.sandbox.errors import forbidden

_HIGHEST = 1_000_000_000
_SYSTEM = "system-"


def _fill_priority_class(priority_class: Object) -> None:
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")
    fill(priority_class, "value", 0)


def _refuse_second_default(priority_class: Object, reader: Reader) -> None:
    if flag(priority_class, "globalDefault", "") is not True:
        return
    for other in reader.select(PRIORITY_CLASSES):
        if other.get("globalDefault") is True and name_of(other) != name_of(priority_class):
            why = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASSES, name_of(priority_class), why)


def _check_priority_class(priority_class: Object, faults: Faults) -> None:
    name, value = text(metadata_of(priority_class), "name", ""), integer(priority_class, "value", "") or 0
    if name.startswith(_SYSTEM):
        if SYSTEM_CLASSES.get(name) != value:
            why = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. error: "
            known = f"value of {name} PriorityClass must be {SYSTEM_CLASSES.get(name)}"
            told = known if name in SYSTEM_CLASSES else f"{name} is not a known system priority class"
            faults.forbidden("metadata.name", why + told)
    elif value > _HIGHEST:
        faults.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = text(priority_class, "preemptionPolicy", "")
    faults.one_of("preemptionPolicy", policy, ("Never", "PreemptLowerPriority"))
    flag(priority_class, "globalDefault", "")


def _priority_stays(new: Object, old: Object, faults: Faults) -> None:
    if new.get("value") != old.get("value"):
        faults.forbidden("value", "may not be changed in an update.")
    faults.immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _fill_spec(obj: Object) -> None:
    spec_to_fill(obj)


def _check_budget(budget: Object, faults: Faults) -> None:
    spec = budget["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        faults.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        check_share(spec, key, "spec", faults)
    check_optional_selector(spec, "selector", "spec", faults)
    if spec.get("unhealthyPodEvictionPolicy") is not None:
        policy = text(spec, "unhealthyPodEvictionPolicy", "spec")
        faults.one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def _new_budget_status(_: Object) -> Object:
    return {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _check_lease(lease: Object, faults: Faults) -> None:
    spec = mapping(lease, "spec", "")
    seconds = integer(spec, "leaseDurationSeconds", "spec")
    if seconds is not None and seconds <= 0:
        faults.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    faults.not_negative("spec.leaseTransitions", integer(spec, "leaseTransitions", "spec"))
    for key in ("acquireTime", "holderIdentity", "renewTime"):
        text(spec, key, "spec")


PRIORITY_CLASS = Rules(
    defaults=_fill_priority_class,
    admit=_refuse_second_default,
    check=_check_priority_class,
    check_update=_priority_stays,
    counts_generations=True,
)
DISRUPTION_BUDGET = Rules(
    defaults=_fill_spec, check=_check_budget, new_status=_new_budget_status, counts_generations=True
)
LEASE = Rules(check=_check_lease)

"""The spec of a pod, of its own or in the template of a workload."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import check_labels
from kubesched.sandbox.admission.pods.containers import KINDS, check_containers, fill_container
from kubesched.sandbox.admission.pods.scheduling import check_affinity, check_gates, check_spread, check_tolerations
from kubesched.sandbox.admission.pods.volumes import check_volumes, fill_volume
from kubesched.sandbox.admission.reading import (
    fill,
    integer,
    mapping,
    quantities,
    records,
    string_map,
    text,
)
from kubesched.sandbox.admission.resources import check_amount, check_requirements

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_INT32 = 2**31 - 1
_NAMES = (
    ("nodeName", names.subdomain),
    ("serviceAccountName", names.subdomain),
    ("priorityClassName", names.subdomain),
)
_LABELS = ("hostname", "subdomain")


def fill_pod_spec(spec: Object, where: str) -> None:
    """What a pod that says nothing else gets."""
    fill(spec, "restartPolicy", "Always")
    fill(spec, "terminationGracePeriodSeconds", 30)
    fill(spec, "dnsPolicy", "ClusterFirst")
    fill(spec, "schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if account := text(spec, "serviceAccountName", where) or text(spec, "serviceAccount", where):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for kind in KINDS:
        for container in records(spec, kind, where):
            fill_container(container, f"{where}.{kind}")
    for volume in records(spec, "volumes", where):
        fill_volume(volume, f"{where}.volumes")


def check_pod_spec(spec: Object, where: str, faults: Faults) -> None:
    volumes = check_volumes(records(spec, "volumes", where), f"{where}.volumes", faults)
    claims = _check_claims(records(spec, "resourceClaims", where), f"{where}.resourceClaims", faults)
    check_containers(spec, volumes, claims, where, faults)
    faults.one_of(f"{where}.restartPolicy", text(spec, "restartPolicy", where), RESTART_POLICIES)
    faults.one_of(f"{where}.dnsPolicy", text(spec, "dnsPolicy", where), _DNS_POLICIES)
    if spec.get("nodeSelector"):
        check_labels(string_map(spec, "nodeSelector", where), f"{where}.nodeSelector", faults)
    if spec.get("affinity"):
        check_affinity(mapping(spec, "affinity", where), f"{where}.affinity", faults)
    if spec.get("schedulingGates"):
        check_gates(records(spec, "schedulingGates", where), f"{where}.schedulingGates", faults)
    if spec.get("topologySpreadConstraints"):
        constraints = records(spec, "topologySpreadConstraints", where)
        check_spread(constraints, f"{where}.topologySpreadConstraints", faults)
    if spec.get("tolerations"):
        check_tolerations(records(spec, "tolerations", where), f"{where}.tolerations", faults)
    _check_plain_fields(spec, where, faults)
    _check_pod_level(spec, claims, where, faults)


def _check_plain_fields(spec: Object, where: str, faults: Faults) -> None:
    for key, rule in _NAMES:
        if name := text(spec, key, where):
            faults.invalid_each(f"{where}.{key}", name, rule(name))
    for key in _LABELS:
        if name := text(spec, key, where):
            faults.invalid_each(f"{where}.{key}", name, names.label(name))
    deadline = integer(spec, "activeDeadlineSeconds", where)
    if deadline is not None and not 1 <= deadline <= _INT32:
        why = f"must be between 1 and {_INT32}, inclusive"
        faults.invalid(f"{where}.activeDeadlineSeconds", deadline, why)
    integer(spec, "terminationGracePeriodSeconds", where)
    if policy := text(spec, "preemptionPolicy", where):
        faults.one_of(f"{where}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    integer(spec, "priority", where)
    text(spec, "schedulerName", where)
    mapping(spec, "securityContext", where)
    for i, gate in enumerate(records(spec, "readinessGates", where)):
        condition = text(gate, "conditionType", where)
        faults.invalid_each(f"{where}.readinessGates[{i}].conditionType", condition, names.label_key(condition))


def _check_pod_level(spec: Object, claims: frozenset[str], where: str, faults: Faults) -> None:
    """What is asked for the pod as a whole."""
    if resources := mapping(spec, "resources", where):
        check_requirements(resources, f"{where}.resources", claims, faults)
    for name, amount in quantities(spec, "overhead", where).items():
        check_amount(name, amount, spec["overhead"][name], f"{where}.overhead[{name}]", faults)


def _check_claims(claims: list[Object], where: str, faults: Faults) -> frozenset[str]:
    """The names by which containers may refer to resource claims."""
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        field = f"{where}[{i}]"
        name = text(claim, "name", field)
        if not name:
            faults.required(f"{field}.name")
        elif name in seen:
            faults.duplicate(f"{field}.name", name)
        else:
            faults.invalid_each(f"{field}.name", name, names.label(name))
        seen.add(name)
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if text(claim, key, field)]
        if len(sources) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            faults.invalid(field, claim, why)
        if not sources:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            faults.invalid(field, claim, why)
        for key in sources:
            faults.invalid_each(f"{field}.{key}", claim[key], names.subdomain(claim[key]))
    return frozenset(seen)

"""The spec of a pod, of its own or in the template of a workload; its volumes, too."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.metadata import check_labels
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.pods.containers import KINDS, check_containers, fill_container
from kubesched.admission.pods.scheduling import check_affinity, check_gates, check_spread, check_tolerations
from kubesched.admission.reading import fill, mapping, quantities, sequence, text
from kubesched.admission.resources import check_amount, check_requirements
from kubesched.api.kinds import Object

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_INT32 = 2**31 - 1
_NAMES = (
    ("nodeName", names.subdomain),
    ("serviceAccountName", names.subdomain),
    ("priorityClassName", names.subdomain),
    ("hostname", names.label),
    ("subdomain", names.label),
)


def fill_pod_spec(spec: Object) -> None:
    """What a pod that says nothing else gets."""
    fill(spec, "restartPolicy", "Always")
    fill(spec, "terminationGracePeriodSeconds", 30)
    fill(spec, "dnsPolicy", "ClusterFirst")
    fill(spec, "schedulerName", "default-scheduler")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if account := text(spec, "serviceAccountName") or text(spec, "serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for kind in KINDS:
        for container in sequence(spec, kind):
            fill_container(container)
    for volume in sequence(spec, "volumes"):
        fill_volume(volume)


def check_pod_spec(spec: Object, where: str, mistakes: Mistakes, *, added: frozenset[str] = frozenset()) -> None:
    """`added` are volumes that a controller gives to the pods of a template."""
    volumes = added | check_volumes(sequence(spec, "volumes"), f"{where}.volumes", mistakes)
    claims = _check_claims(sequence(spec, "resourceClaims"), f"{where}.resourceClaims", mistakes)
    check_containers(spec, volumes, claims, where, mistakes)
    mistakes.one_of(f"{where}.restartPolicy", text(spec, "restartPolicy"), RESTART_POLICIES)
    mistakes.one_of(f"{where}.dnsPolicy", text(spec, "dnsPolicy"), _DNS_POLICIES)
    if spec.get("nodeSelector"):
        check_labels(mapping(spec, "nodeSelector"), f"{where}.nodeSelector", mistakes)
    if spec.get("affinity"):
        check_affinity(mapping(spec, "affinity"), f"{where}.affinity", mistakes)
    if "schedulingGroup" in spec and spec["schedulingGroup"] is not None:
        group, at = mapping(spec, "schedulingGroup"), f"{where}.schedulingGroup"
        if not group.get("podGroupName"):
            mistakes.invalid(at, group, "must specify one of: `podGroupName`")
        else:
            mistakes.named(f"{at}.podGroupName", group["podGroupName"], names.subdomain)
    if spec.get("schedulingGates"):
        check_gates(sequence(spec, "schedulingGates"), f"{where}.schedulingGates", mistakes)
    if spec.get("topologySpreadConstraints"):
        constraints = sequence(spec, "topologySpreadConstraints")
        check_spread(constraints, f"{where}.topologySpreadConstraints", mistakes)
    if spec.get("tolerations"):
        check_tolerations(sequence(spec, "tolerations"), f"{where}.tolerations", mistakes)
    _check_plain_fields(spec, where, mistakes)
    _check_pod_level(spec, claims, where, mistakes)


def _check_plain_fields(spec: Object, where: str, mistakes: Mistakes) -> None:
    for key, rule in _NAMES:
        if name := text(spec, key):
            mistakes.invalid_each(f"{where}.{key}", name, rule(name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32:
        why = f"must be between 1 and {_INT32}, inclusive"
        mistakes.invalid(f"{where}.activeDeadlineSeconds", deadline, why)
    if policy := text(spec, "preemptionPolicy"):
        mistakes.one_of(f"{where}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    for i, gate in enumerate(sequence(spec, "readinessGates")):
        condition = text(gate, "conditionType")
        mistakes.invalid_each(f"{where}.readinessGates[{i}].conditionType", condition, names.label_key(condition))


def _check_pod_level(spec: Object, claims: frozenset[str], where: str, mistakes: Mistakes) -> None:
    """What is asked for the pod as a whole."""
    if resources := mapping(spec, "resources"):
        check_requirements(resources, f"{where}.resources", claims, mistakes)
    for name, amount in quantities(spec, "overhead").items():
        check_amount(name, amount, spec["overhead"][name], f"{where}.overhead[{name}]", mistakes)


def _check_claims(claims: list[Object], where: str, mistakes: Mistakes) -> frozenset[str]:
    """The names by which containers may refer to resource claims."""
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        field = f"{where}[{i}]"
        name = text(claim, "name")
        if not name:
            mistakes.required(f"{field}.name")
        elif name in seen:
            mistakes.duplicate(f"{field}.name", name)
        else:
            mistakes.invalid_each(f"{field}.name", name, names.label(name))
        seen.add(name)
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if text(claim, key)]
        if len(sources) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            mistakes.invalid(field, claim, why)
        if not sources:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            mistakes.invalid(field, claim, why)
        for key in sources:
            mistakes.invalid_each(f"{field}.{key}", claim[key], names.subdomain(claim[key]))
    return frozenset(seen)


_MODE = 0o644
_NEEDED_BY_SOURCES = (
    ("persistentVolumeClaim", "claimName"),
    ("ephemeral", "volumeClaimTemplate"),
    ("csi", "driver"),
    ("hostPath", "path"),
)
_WITH_MODE = ("configMap", "secret", "projected", "downwardAPI")


def fill_volume(volume: Object) -> None:
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for key in _WITH_MODE:
        if volume.get(key) is not None:
            fill(mapping(volume, key), "defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        fill(mapping(volume, "hostPath"), "type", "")
    template = mapping(mapping(volume, "ephemeral"), "volumeClaimTemplate")
    if template.get("spec") is not None:
        fill(mapping(template, "spec"), "volumeMode", "Filesystem")


def check_volumes(volumes: list[Object], where: str, mistakes: Mistakes) -> frozenset[str]:
    """The names that containers may mount."""
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        field = f"{where}[{i}]"
        _check_source(volume, field, mistakes)
        name = text(volume, "name")
        mistakes.named(f"{field}.name", name, names.label)
        mistakes.unique(f"{field}.name", name, seen)
    return frozenset(seen)


def _check_source(volume: Object, where: str, mistakes: Mistakes) -> None:
    sources = [key for key in volume if key != "name" and volume.get(key) is not None]
    mistakes.not_empty(where, sources, "must specify a volume type")
    for key in sources[1:]:
        mistakes.forbidden(f"{where}.{key}", "may not specify more than 1 volume type")
    for source, key in _NEEDED_BY_SOURCES:
        if source in sources:
            mistakes.not_empty(f"{where}.{source}.{key}", volume[source].get(key))

"""ResourceQuotas: what objects take of a namespace's share, and the refusal of what would exceed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.admission.metadata import name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import filled, mapping, quantities, sequence, text
from kubesched.admission.resources import check_amount, pod_limits, pod_requests_of, quality_of_service
from kubesched.admission.rules import Rules
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Object, Resource
from kubesched.api.quantity import ZERO, Quantity, family_of, parse_quantity, spell
from kubesched.api.requests import is_extended
from kubesched.api.well_known import STORAGE_CLASS

Usage = Mapping[str, Quantity]

_ONE = Quantity(1)
_BY_NAME = ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets")
"""Resources of the core group that are counted by their bare names, too."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_SAID = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_SCOPES = ("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating")
_OF_CLASS = ".storageclass.storage.k8s.io/"


def _fill(quota: Object) -> None:
    filled(quota, "spec")


def _check(quota: Object, mistakes: Mistakes) -> None:
    for name, amount in quantities(quota["spec"], "hard").items():
        check_amount(name, amount, quota["spec"]["hard"][name], f"spec.hard[{name}]", mistakes)
    for scope in sequence(quota["spec"], "scopes"):
        mistakes.one_of("spec.scopes", scope, _SCOPES)


def _new_status(quota: Object) -> Object:
    hard = mapping(quota["spec"], "hard")
    return {"hard": hard, "used": dict.fromkeys(hard, "0")} if hard else {}


RULES = Rules(defaults=_fill, check=_check, new_status=_new_status)


def usage(resource: Resource, obj: Object) -> Usage:
    """What one object takes; nothing for a pod that has ended."""
    found = {f"count/{resource.qualified}": _ONE}
    if not resource.group and resource.plural in _BY_NAME:
        found[resource.plural] = _ONE
    if resource is PODS:
        if mapping(obj, "status").get("phase") in ("Succeeded", "Failed"):
            return {}
        found |= _compute(pod_requests_of(obj["spec"]), pod_limits(obj["spec"]))
    elif resource is SERVICES:
        kind = text(obj["spec"], "type")
        ports = len(sequence(obj["spec"], "ports")) if kind in ("NodePort", "LoadBalancer") else 0
        found |= {"services": _ONE, "services.nodeports": Quantity(ports)}
        found["services.loadbalancers"] = Quantity(int(kind == "LoadBalancer"))
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        found |= _of_claim(obj)
    return found


def _compute(requests: Usage, limits: Usage) -> dict[str, Quantity]:
    found = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = amount
        if name in found or is_extended(name):
            found[f"requests.{name}"] = amount
    return found | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def _of_claim(claim: Object) -> dict[str, Quantity]:
    storage = quantities(mapping(claim["spec"], "resources"), "requests").get("storage", ZERO)
    found = {"requests.storage": storage}
    annotations = mapping(mapping(claim, "metadata"), "annotations")
    if name := annotations.get(STORAGE_CLASS) or text(claim["spec"], "storageClassName"):
        found[f"{name}{_OF_CLASS}requests.storage"] = storage
        found[f"{name}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    return found


def charged(resource: Resource, obj: Object, quotas: Iterable[Object]) -> list[Object]:
    """The quotas as they are once the object is there, those that it concerns. Raises ApiError if one is exceeded."""
    found = []
    taken: Usage | None = None
    for quota in quotas:
        if not _covers(quota, resource, obj):
            continue
        taken = usage(resource, obj) if taken is None else taken
        hard = mapping(quota["spec"], "hard")
        if resource is PODS:
            _demand(obj, quota, hard)
        own = {name: taken[name] for name in hard if name in taken and taken[name].amount}
        if own:
            found.append(_charged(quota, own, resource, obj))
    return found


def _charged(quota: Object, own: Usage, resource: Resource, obj: Object) -> Object:
    hard, before = quota["spec"]["hard"], mapping(mapping(quota, "status"), "used")
    after = {name: parse_quantity(before.get(name, 0)).plus(amount) for name, amount in own.items()}
    if exceeded := sorted(name for name in own if after[name].exceeds(parse_quantity(hard[name]))):
        asked = ",".join(f"{name}={_spelled(own[name], hard[name])}" for name in exceeded)
        used = ",".join(f"{name}={before.get(name, 0)}" for name in exceeded)
        limited = ",".join(f"{name}={hard[name]}" for name in exceeded)
        why = f"exceeded quota: {name_of(quota)}, requested: {asked}, used: {used}, limited: {limited}"
        raise forbidden(resource, name_of(obj), why)
    spelled = {name: _spelled(amount, hard[name]) for name, amount in after.items()}
    return {**quota, "status": {**mapping(quota, "status"), "used": {**before, **spelled}}}


def _demand(pod: Object, quota: Object, hard: Object) -> None:
    """Where cpu and memory are shared out, every container says how much it wants."""
    if mapping(pod["spec"], "resources"):
        return
    missing: dict[str, list[str]] = {}
    for container in (*sequence(pod["spec"], "containers"), *sequence(pod["spec"], "initContainers")):
        resources = mapping(container, "resources")
        said = _compute(quantities(resources, "requests"), quantities(resources, "limits"))
        for name in (_MUST_BE_SAID & hard.keys()) - said.keys():
            missing.setdefault(name, []).append(container["name"])
    if missing:
        words = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
        raise forbidden(PODS, name_of(pod), f"failed quota: {name_of(quota)}: must specify {words}")


def used(quota: Object, objects: Mapping[Resource, Iterable[Object]]) -> Object:
    """What is taken of a quota by all objects of its namespace, as its status says it."""
    hard = mapping(quota["spec"], "hard")
    total = dict.fromkeys(hard, ZERO)
    for resource, held in objects.items():
        for obj in held:
            if _covers(quota, resource, obj):
                for name, amount in usage(resource, obj).items():
                    if name in total:
                        total[name] = total[name].plus(amount)
    return {name: _spelled(amount, hard[name]) for name, amount in total.items()}


def _spelled(amount: Quantity, like: str | int) -> str:
    return spell(amount.nano(), family_of(like))


# -- scopes -----------------------------------------------------------------------------------------------------------


def _covers(quota: Object, resource: Resource, obj: Object) -> bool:
    spec = quota["spec"]
    wanted = [{"scopeName": scope, "operator": "Exists"} for scope in sequence(spec, "scopes")]
    wanted += sequence(mapping(spec, "scopeSelector"), "matchExpressions")
    return not wanted or (resource is PODS and all(_is_in(obj, each) for each in wanted))


def _is_in(pod: Object, wanted: Object) -> bool:
    spec = pod["spec"]
    match wanted["scopeName"]:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            return _is_among(text(spec, "priorityClassName"), wanted)
        case _:
            return _looks_elsewhere(spec)


def _is_among(name: str, wanted: Object) -> bool:
    match wanted["operator"]:
        case "In":
            return name in sequence(wanted, "values")
        case "NotIn":
            return name not in sequence(wanted, "values")
        case operator:
            exists: bool = operator == "Exists"
            return bool(name) == exists


def _looks_elsewhere(spec: Object) -> bool:
    """Whether an affinity term of the pod names other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(mapping(spec, "affinity"), kind)
        terms = sequence(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = sequence(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*terms, *(mapping(each, "podAffinityTerm") for each in preferred)):
            if sequence(term, "namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False

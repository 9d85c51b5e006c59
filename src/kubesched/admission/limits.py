"""LimitRanges and ResourceQuotas: defaults and bounds of what pods and claims ask for, and shares of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from kubesched.admission.reading import ensure_mapping, mapping, metadata_of, name_of, quantities, sequence, text
from kubesched.admission.resources import check_amount, is_huge_page, pod_limits, pod_requests_of, quality_of_service
from kubesched.admission.rules import Mistakes, Reader, Rules
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Object, Resource
from kubesched.api.quantity import ZERO, Quantity, family_of, parse_quantity, spell
from kubesched.api.requests import is_extended
from kubesched.api.selectors import Requirement
from kubesched.api.well_known import STORAGE_CLASS

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


# -- LimitRanges ------------------------------------------------------------------------------------------------------


def _fill_range(limit_range: Object) -> None:
    for item in sequence(ensure_mapping(limit_range, "spec"), "limits"):
        if text(item, "type") == "Container":
            limits = {**mapping(item, "max"), **mapping(item, "default")}
            requests = {**mapping(item, "min"), **limits, **mapping(item, "defaultRequest")}
            for key, amounts in (("default", limits), ("defaultRequest", requests)):
                if amounts:
                    item[key] = amounts


def _check_range(limit_range: Object, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, item in enumerate(sequence(limit_range["spec"], "limits")):
        where, kind = f"spec.limits[{i}]", text(item, "type")
        mistakes.required_one_of(f"{where}.type", kind, _TYPES)
        mistakes.unique(f"{where}.type", kind, seen)
        minima, maxima = quantities(item, "min"), quantities(item, "max")
        for name in minima.keys() & maxima.keys():
            if minima[name].exceeds(maxima[name]):
                why = f"min value {item['min'][name]} is greater than max value {item['max'][name]}"
                mistakes.invalid(f"{where}.min[{name}]", str(item["min"][name]), why)


LIMIT_RANGE = Rules(defaults=_fill_range, check=_check_range)


def limit_pod(pod: Object, reader: Reader) -> None:
    """Fill in what containers leave out, and refuse a pod that asks for too much or too little."""
    ranges = list(reader.select(LIMIT_RANGES, text(metadata_of(pod), "namespace")))
    for limit_range in ranges:
        _fill_amounts(pod, limit_range)
    _refuse_violations(
        PODS,
        pod,
        [why for item in _items(ranges) for amounts in _amounts_of(pod, item) for why in _violations(item, amounts)],
    )


def limit_claim(claim: Object, reader: Reader) -> None:
    """Refuse a claim that asks for too much or too little."""
    resources = mapping(claim["spec"], "resources")
    amounts: _Amounts = {"request": _amounts_as_written(resources, "requests"), "limit": {}}
    ranges = reader.select(LIMIT_RANGES, text(metadata_of(claim), "namespace"))
    items = [item for item in _items(ranges) if item["type"] == "PersistentVolumeClaim"]
    violations = [why for item in items for why in _violations(item, amounts, needed="request")]
    _refuse_violations(PERSISTENT_VOLUME_CLAIMS, claim, violations)


def _refuse_violations(resource: Resource, obj: Object, violations: list[str]) -> None:
    if violations:
        why = violations[0] if len(violations) == 1 else f"[{', '.join(violations)}]"
        raise forbidden(resource, name_of(obj), why)


_Amounts = dict[str, dict[str, tuple[Quantity, str]]]
"""The `request` and the `limit` of a container, a pod or a claim by resource: the amount, and how it is written."""


def _items(ranges: Iterable[Object]) -> Iterator[Object]:
    for limit_range in ranges:
        yield from sequence(mapping(limit_range, "spec"), "limits")


def _fill_amounts(pod: Object, limit_range: Object) -> None:
    """Give containers the default amounts of the LimitRange, and annotate the pod with them."""
    notes = []
    for item in _items([limit_range]):
        if item["type"] != "Container":
            continue
        for kind, word in _CONTAINERS:
            for container in sequence(pod["spec"], kind):
                resources = ensure_mapping(container, "resources")
                for key, default, what in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                    missing = mapping(item, default).keys() - mapping(resources, key).keys()
                    if missing:
                        resources[key] = {**mapping(item, default), **mapping(resources, key)}
                        notes.append(f"{', '.join(sorted(missing))} {what} for {word} {container['name']}")
    if notes:
        ensure_mapping(metadata_of(pod), "annotations")[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)


def _amounts_of(pod: Object, item: Object) -> Iterator[_Amounts]:
    """The amounts that a limit is about: of each container, or of the pod as a whole."""
    if item["type"] == "Container":
        for kind, _ in _CONTAINERS:
            for container in sequence(pod["spec"], kind):
                resources = mapping(container, "resources")
                requests, limits = (_amounts_as_written(resources, key) for key in ("requests", "limits"))
                yield {"request": requests, "limit": limits}
    elif item["type"] == "Pod":
        yield {"request": _show(pod_requests_of(pod["spec"])), "limit": _show(pod_limits(pod["spec"]))}


def _amounts_as_written(resources: Object, key: str) -> dict[str, tuple[Quantity, str]]:
    return {name: (parse_quantity(value), str(value)) for name, value in mapping(resources, key).items()}


def _show(amounts: dict[str, Quantity]) -> dict[str, tuple[Quantity, str]]:
    return {
        name: (amount, f"{amount.milli()}m" if name == "cpu" else str(amount.value()))
        for name, amount in amounts.items()
    }


def _violations(item: Object, amounts: _Amounts, *, needed: str = "limit") -> Iterator[str]:
    """`needed` is what must be specified of a resource that has a maximum."""
    kind = item["type"]
    for name, minimum in mapping(item, "min").items():
        rule, bound = f"minimum {name} usage per {kind} is {minimum}", parse_quantity(minimum)
        if name not in amounts["request"]:
            yield f"{rule}.  No request is specified"
        elif excess := _first_beyond(name, amounts, ("request", "limit"), bound.exceeds):
            yield f"{rule}, but {excess}"
    for name, maximum in mapping(item, "max").items():
        rule, bound = f"maximum {name} usage per {kind} is {maximum}", parse_quantity(maximum)
        if name not in amounts[needed]:
            yield f"{rule}.  No {needed} is specified"
        elif excess := _first_beyond(name, amounts, ("limit", "request"), partial(Quantity.exceeds, other=bound)):
            yield f"{rule}, but {excess}"
    for name, ratio in mapping(item, "maxLimitRequestRatio").items():
        yield from _ratio_violations(name, ratio, amounts, kind)


def _first_beyond(name: str, amounts: _Amounts, order: tuple[str, ...], is_beyond: Callable[[Quantity], bool]) -> str:
    """The first of the two amounts that is beyond a bound, in words; empty if none is."""
    specified = ((what, *amounts[what][name]) for what in order if name in amounts[what])
    return next((f"{what} is {written}" for what, amount, written in specified if is_beyond(amount)), "")


def _ratio_violations(name: str, ratio: str, amounts: _Amounts, kind: str) -> Iterator[str]:
    rule = f"{name} max limit to request ratio per {kind} is {ratio}"
    request, limit = (amounts[what][name][0] if name in amounts[what] else ZERO for what in ("request", "limit"))
    if not request.amount:
        yield f"{rule}, but no request is specified or request is 0"
    elif not limit.amount:
        yield f"{rule}, but no limit is specified or limit is 0"
    elif (provided := limit.nano() / request.nano()) > parse_quantity(ratio).nano() / 10**9:
        yield f"{rule}, but provided ratio is {provided:f}"


# -- quotas -----------------------------------------------------------------------------------------------------------


Usage = Mapping[str, Quantity]

_ONE = Quantity(1)
_BY_NAME = ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets")
"""Resources of the core group that are counted by their bare names, too."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_SPECIFIED = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_SCOPES = ("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating")
_OF_CLASS = ".storageclass.storage.k8s.io/"


def _check_quota(quota: Object, mistakes: Mistakes) -> None:
    for name, amount in quantities(quota["spec"], "hard").items():
        check_amount(name, amount, quota["spec"]["hard"][name], f"spec.hard[{name}]", mistakes)
    for scope in sequence(quota["spec"], "scopes"):
        mistakes.one_of("spec.scopes", scope, _SCOPES)


def _new_quota_status(quota: Object) -> Object:
    hard = mapping(quota["spec"], "hard")
    return {"hard": hard, "used": dict.fromkeys(hard, "0")} if hard else {}


RESOURCE_QUOTA = Rules(fills={"spec": {}}, check=_check_quota, new_status=_new_quota_status)


def usage_of(resource: Resource, obj: Object) -> Usage:
    """What one object takes; nothing for a pod that has ended."""
    usage = {f"count/{resource.qualified}": _ONE}
    if not resource.group and resource.plural in _BY_NAME:
        usage[resource.plural] = _ONE
    if resource is PODS:
        if mapping(obj, "status").get("phase") in ("Succeeded", "Failed"):
            return {}
        usage |= _usage_of_amounts(pod_requests_of(obj["spec"]), pod_limits(obj["spec"]))
    elif resource is SERVICES:
        kind = text(obj["spec"], "type")
        ports = len(sequence(obj["spec"], "ports")) if kind in ("NodePort", "LoadBalancer") else 0
        usage |= {"services": _ONE, "services.nodeports": Quantity(ports)}
        usage["services.loadbalancers"] = Quantity(int(kind == "LoadBalancer"))
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        usage |= _usage_of_claim(obj)
    return usage


def _usage_of_amounts(requests: Usage, limits: Usage) -> dict[str, Quantity]:
    usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or is_huge_page(name):
            usage[name] = amount
        if name in usage or is_extended(name):
            usage[f"requests.{name}"] = amount
    return usage | {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}


def _usage_of_claim(claim: Object) -> dict[str, Quantity]:
    storage = quantities(mapping(claim["spec"], "resources"), "requests").get("storage", ZERO)
    usage = {"requests.storage": storage}
    annotations = mapping(metadata_of(claim), "annotations")
    if name := annotations.get(STORAGE_CLASS) or text(claim["spec"], "storageClassName"):
        usage[f"{name}{_OF_CLASS}requests.storage"] = storage
        usage[f"{name}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    return usage


def charge_quotas(resource: Resource, obj: Object, quotas: Iterable[Object]) -> list[Object]:
    """The quotas that cover the object, with its usage added. Raises ApiError if it exceeds one."""
    charged = []
    usage: Usage | None = None
    for quota in quotas:
        if not _covers(quota, resource, obj):
            continue
        usage = usage_of(resource, obj) if usage is None else usage
        hard = mapping(quota["spec"], "hard")
        if resource is PODS:
            _check_amounts_are_specified(obj, quota, hard)
        if limited := {name: usage[name] for name in hard if name in usage and usage[name].amount}:
            charged.append(_charge(quota, limited, resource, obj))
    return charged


def _charge(quota: Object, usage: Usage, resource: Resource, obj: Object) -> Object:
    hard, before = quota["spec"]["hard"], mapping(mapping(quota, "status"), "used")
    after = {name: parse_quantity(before.get(name, 0)).plus(amount) for name, amount in usage.items()}
    if exceeded := sorted(name for name in usage if after[name].exceeds(parse_quantity(hard[name]))):
        requested = ",".join(f"{name}={_spell(usage[name], hard[name])}" for name in exceeded)
        used = ",".join(f"{name}={before.get(name, 0)}" for name in exceeded)
        limited = ",".join(f"{name}={hard[name]}" for name in exceeded)
        why = f"exceeded quota: {name_of(quota)}, requested: {requested}, used: {used}, limited: {limited}"
        raise forbidden(resource, name_of(obj), why)
    spelled = {name: _spell(amount, hard[name]) for name, amount in after.items()}
    return {**quota, "status": {**mapping(quota, "status"), "used": {**before, **spelled}}}


def _check_amounts_are_specified(pod: Object, quota: Object, hard: Object) -> None:
    """Refuse a pod if the quota limits cpu or memory and a container does not specify how much it needs."""
    if mapping(pod["spec"], "resources"):
        return
    missing: dict[str, list[str]] = {}
    for container in (*sequence(pod["spec"], "containers"), *sequence(pod["spec"], "initContainers")):
        resources = mapping(container, "resources")
        usage = _usage_of_amounts(quantities(resources, "requests"), quantities(resources, "limits"))
        for name in (_MUST_BE_SPECIFIED & hard.keys()) - usage.keys():
            missing.setdefault(name, []).append(container["name"])
    if missing:
        amounts = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
        raise forbidden(PODS, name_of(pod), f"failed quota: {name_of(quota)}: must specify {amounts}")


def quota_usage(quota: Object, objects: Mapping[Resource, Iterable[Object]]) -> Object:
    """What all objects of its namespace use of a quota, as it is written to the quota's status."""
    hard = mapping(quota["spec"], "hard")
    total = dict.fromkeys(hard, ZERO)
    for resource, objects_of_kind in objects.items():
        for obj in objects_of_kind:
            if _covers(quota, resource, obj):
                for name, amount in usage_of(resource, obj).items():
                    if name in total:
                        total[name] = total[name].plus(amount)
    return {name: _spell(amount, hard[name]) for name, amount in total.items()}


def _spell(amount: Quantity, like: str | int) -> str:
    return spell(amount.nano(), family_of(like))


# -- scopes -----------------------------------------------------------------------------------------------------------


def _covers(quota: Object, resource: Resource, obj: Object) -> bool:
    spec = quota["spec"]
    requirements = [{"scopeName": scope, "operator": "Exists"} for scope in sequence(spec, "scopes")]
    requirements += sequence(mapping(spec, "scopeSelector"), "matchExpressions")
    return not requirements or (resource is PODS and all(_is_in_scope(obj, each) for each in requirements))


def _is_in_scope(pod: Object, requirement: Object) -> bool:
    spec = pod["spec"]
    match requirement["scopeName"]:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            name, values = text(spec, "priorityClassName"), frozenset(sequence(requirement, "values"))
            return Requirement("priorityClassName", requirement["operator"], values).accepts(name or None)
        case _:
            return _names_other_namespaces(spec)


def _names_other_namespaces(spec: Object) -> bool:
    """Whether an affinity term of the pod names other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(mapping(spec, "affinity"), kind)
        required = sequence(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = sequence(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*required, *(mapping(weighted, "podAffinityTerm") for weighted in preferred)):
            if sequence(term, "namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False

"""LimitRanges and ResourceQuotas: defaults and bounds of what pods and claims ask for, and shares of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from kubesched.admission.reading import ensure_mapping, mapping, metadata_of, name_of, quantities, sequence, text
from kubesched.admission.resources import check_amount, pod_limits, pod_requests_of, quality_of_service
from kubesched.admission.rules import Mistakes, Reader, Rules
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Object, Resource
from kubesched.api.quantity import ZERO, Quantity, family_of, parse_quantity, spell
from kubesched.api.requests import is_extended
from kubesched.api.well_known import STORAGE_CLASS

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_NOTE = "kubernetes.io/limit-ranger"
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


# -- the objects themselves -------------------------------------------------------------------------------------------


def _fill_range(limit_range: Object) -> None:
    for item in sequence(ensure_mapping(limit_range, "spec"), "limits"):
        if text(item, "type") == "Container":
            default = {**mapping(item, "max"), **mapping(item, "default")}
            requested = {**mapping(item, "min"), **default, **mapping(item, "defaultRequest")}
            for key, amounts in (("default", default), ("defaultRequest", requested)):
                if amounts:
                    item[key] = amounts


def _check_range(limit_range: Object, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, item in enumerate(sequence(limit_range["spec"], "limits")):
        where, kind = f"spec.limits[{i}]", text(item, "type")
        mistakes.chosen(f"{where}.type", kind, _TYPES)
        mistakes.unique(f"{where}.type", kind, seen)
        least, most = quantities(item, "min"), quantities(item, "max")
        for name in least.keys() & most.keys():
            if least[name].exceeds(most[name]):
                words = f"min value {item['min'][name]} is greater than max value {item['max'][name]}"
                mistakes.invalid(f"{where}.min[{name}]", str(item["min"][name]), words)


LIMIT_RANGE = Rules(defaults=_fill_range, check=_check_range)


# -- what follows from them -------------------------------------------------------------------------------------------


def limit_pod(pod: Object, reader: Reader) -> None:
    """Fill in what containers leave out, and refuse a pod that asks for too much or too little."""
    ranges = list(reader.select(LIMIT_RANGES, text(metadata_of(pod), "namespace")))
    if not ranges:
        return
    for each in ranges:
        _give_defaults(pod, each)
    found = [words for item in _items(ranges) for asked in _asked_by(pod, item) for words in _violations(item, asked)]
    if found:
        raise forbidden(PODS, name_of(pod), _together(found))


def limit_claim(claim: Object, reader: Reader) -> None:
    """Refuse a claim that asks for too much or too little."""
    resources = mapping(claim["spec"], "resources")
    asked: _Asked = {"request": _write_amount(resources, "requests"), "limit": {}}
    ranges = reader.select(LIMIT_RANGES, text(metadata_of(claim), "namespace"))
    items = [item for item in _items(ranges) if item["type"] == "PersistentVolumeClaim"]
    if found := [words for item in items for words in _violations(item, asked, needed="request")]:
        raise forbidden(PERSISTENT_VOLUME_CLAIMS, name_of(claim), _together(found))


_Asked = dict[str, dict[str, tuple[Quantity, str]]]
"""The `request` and the `limit` of a container, a pod or a claim by resource: the amount, and how it is written."""


def _items(ranges: Iterable[Object]) -> Iterator[Object]:
    for each in ranges:
        yield from sequence(mapping(each, "spec"), "limits")


def _give_defaults(pod: Object, limit_range: Object) -> None:
    notes = []
    for item in sequence(mapping(limit_range, "spec"), "limits"):
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
        ensure_mapping(metadata_of(pod), "annotations")[_NOTE] = "LimitRanger plugin set: " + "; ".join(notes)


def _asked_by(pod: Object, item: Object) -> Iterator[_Asked]:
    if item["type"] == "Container":
        for kind, _ in _CONTAINERS:
            for container in sequence(pod["spec"], kind):
                resources = mapping(container, "resources")
                yield {"request": _write_amount(resources, "requests"), "limit": _write_amount(resources, "limits")}
    elif item["type"] == "Pod":
        yield {"request": _show(pod_requests_of(pod["spec"])), "limit": _show(pod_limits(pod["spec"]))}


def _write_amount(resources: Object, key: str) -> dict[str, tuple[Quantity, str]]:
    return {name: (parse_quantity(value), str(value)) for name, value in mapping(resources, key).items()}


def _show(amounts: dict[str, Quantity]) -> dict[str, tuple[Quantity, str]]:
    return {
        name: (amount, f"{amount.milli()}m" if name == "cpu" else str(amount.value()))
        for name, amount in amounts.items()
    }


def _violations(item: Object, asked: _Asked, *, needed: str = "limit") -> Iterator[str]:
    """`needed` is what must be said of a resource that has a maximum."""
    kind = item["type"]
    for name, least in mapping(item, "min").items():
        words, bound = f"minimum {name} usage per {kind} is {least}", parse_quantity(least)
        if name not in asked["request"]:
            yield f"{words}.  No request is specified"
        elif found := _first(name, asked, ("request", "limit"), bound.exceeds):
            yield f"{words}, but {found}"
    for name, most in mapping(item, "max").items():
        words, bound = f"maximum {name} usage per {kind} is {most}", parse_quantity(most)
        if name not in asked[needed]:
            yield f"{words}.  No {needed} is specified"
        elif found := _first(name, asked, ("limit", "request"), partial(Quantity.exceeds, other=bound)):
            yield f"{words}, but {found}"
    for name, ratio in mapping(item, "maxLimitRequestRatio").items():
        yield from _ratio_violations(name, ratio, asked, kind)


def _first(name: str, asked: _Asked, order: tuple[str, ...], is_beyond: Callable[[Quantity], bool]) -> str:
    """The first of the two amounts that is beyond a bound, in words; empty if none is."""
    held = ((what, *asked[what][name]) for what in order if name in asked[what])
    return next((f"{what} is {written}" for what, amount, written in held if is_beyond(amount)), "")


def _ratio_violations(name: str, ratio: str, asked: _Asked, kind: str) -> Iterator[str]:
    words = f"{name} max limit to request ratio per {kind} is {ratio}"
    request, limit = (asked[what][name][0] if name in asked[what] else None for what in ("request", "limit"))
    if request is None or not request.amount:
        yield f"{words}, but no request is specified or request is 0"
    elif limit is None or not limit.amount:
        yield f"{words}, but no limit is specified or limit is 0"
    elif (provided := limit.nano() / request.nano()) > parse_quantity(ratio).nano() / 10**9:
        yield f"{words}, but provided ratio is {provided:f}"


def _together(found: list[str]) -> str:
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


# -- quotas -----------------------------------------------------------------------------------------------------------


Usage = Mapping[str, Quantity]

_ONE = Quantity(1)
_BY_NAME = ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets")
"""Resources of the core group that are counted by their bare names, too."""
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_SAID = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
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


def charge_quotas(resource: Resource, obj: Object, quotas: Iterable[Object]) -> list[Object]:
    """The quotas as they are once the object is there, those that it concerns. Raises ApiError if one is exceeded."""
    found = []
    taken: Usage | None = None
    for quota in quotas:
        if not _covers(quota, resource, obj):
            continue
        taken = usage_of(resource, obj) if taken is None else taken
        hard = mapping(quota["spec"], "hard")
        if resource is PODS:
            _demand(obj, quota, hard)
        own = {name: taken[name] for name in hard if name in taken and taken[name].amount}
        if own:
            found.append(_charge(quota, own, resource, obj))
    return found


def _charge(quota: Object, own: Usage, resource: Resource, obj: Object) -> Object:
    hard, before = quota["spec"]["hard"], mapping(mapping(quota, "status"), "used")
    after = {name: parse_quantity(before.get(name, 0)).plus(amount) for name, amount in own.items()}
    if exceeded := sorted(name for name in own if after[name].exceeds(parse_quantity(hard[name]))):
        asked = ",".join(f"{name}={_spell(own[name], hard[name])}" for name in exceeded)
        used = ",".join(f"{name}={before.get(name, 0)}" for name in exceeded)
        limited = ",".join(f"{name}={hard[name]}" for name in exceeded)
        why = f"exceeded quota: {name_of(quota)}, requested: {asked}, used: {used}, limited: {limited}"
        raise forbidden(resource, name_of(obj), why)
    spelled = {name: _spell(amount, hard[name]) for name, amount in after.items()}
    return {**quota, "status": {**mapping(quota, "status"), "used": {**before, **spelled}}}


def _demand(pod: Object, quota: Object, hard: Object) -> None:
    """Refuse a pod if the quota limits cpu or memory and a container does not say how much it needs."""
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


def quota_usage(quota: Object, objects: Mapping[Resource, Iterable[Object]]) -> Object:
    """What is taken of a quota by all objects of its namespace, as its status says it."""
    hard = mapping(quota["spec"], "hard")
    total = dict.fromkeys(hard, ZERO)
    for resource, held in objects.items():
        for obj in held:
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

"""LimitRanges: what containers get that say nothing, and how much or little a pod or a claim may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kubesched.admission.metadata import metadata_of, name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import filled, mapping, quantities, sequence, text
from kubesched.admission.resources import pod_limits, pod_requests_of
from kubesched.admission.rules import Reader, Rules
from kubesched.api.api_error import forbidden
from kubesched.api.kinds import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS, Object
from kubesched.api.quantity import Quantity, parse_quantity

_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_NOTE = "kubernetes.io/limit-ranger"
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


# -- the objects themselves -------------------------------------------------------------------------------------------


def _fill(limit_range: Object) -> None:
    for item in sequence(filled(limit_range, "spec"), "limits"):
        if text(item, "type") == "Container":
            default = {**mapping(item, "max"), **mapping(item, "default")}
            requested = {**mapping(item, "min"), **default, **mapping(item, "defaultRequest")}
            for key, amounts in (("default", default), ("defaultRequest", requested)):
                if amounts:
                    item[key] = amounts


def _check(limit_range: Object, mistakes: Mistakes) -> None:
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


RULES = Rules(defaults=_fill, check=_check)


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
    asked = _Asked(quantities(resources, "requests"), {}, mapping(resources, "requests"), {})
    ranges = reader.select(LIMIT_RANGES, text(metadata_of(claim), "namespace"))
    items = [item for item in _items(ranges) if item["type"] == "PersistentVolumeClaim"]
    if found := [words for item in items for words in _violations(item, asked, limits_count=False)]:
        raise forbidden(PERSISTENT_VOLUME_CLAIMS, name_of(claim), _together(found))


class _Asked(NamedTuple):
    """What a container, a pod or a claim asks for, as amounts and as it was written."""

    requests: dict[str, Quantity]
    limits: dict[str, Quantity]
    written_requests: Object
    written_limits: Object


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
                resources = filled(container, "resources")
                for key, default, what in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                    missing = mapping(item, default).keys() - mapping(resources, key).keys()
                    if missing:
                        resources[key] = {**mapping(item, default), **mapping(resources, key)}
                        notes.append(f"{', '.join(sorted(missing))} {what} for {word} {container['name']}")
    if notes:
        filled(metadata_of(pod), "annotations")[_NOTE] = "LimitRanger plugin set: " + "; ".join(notes)


def _asked_by(pod: Object, item: Object) -> Iterator[_Asked]:
    if item["type"] == "Container":
        for kind, _ in _CONTAINERS:
            for container in sequence(pod["spec"], kind):
                resources = mapping(container, "resources")
                written = mapping(resources, "requests"), mapping(resources, "limits")
                yield _Asked(quantities(resources, "requests"), quantities(resources, "limits"), *written)
    elif item["type"] == "Pod":
        requests, limits = pod_requests_of(pod["spec"]), pod_limits(pod["spec"])
        yield _Asked(requests, limits, _shown(requests), _shown(limits))


def _shown(amounts: dict[str, Quantity]) -> Object:
    return {name: f"{amount.milli()}m" if name == "cpu" else str(amount.value()) for name, amount in amounts.items()}


def _violations(item: Object, asked: _Asked, *, limits_count: bool = True) -> Iterator[str]:
    kind = item["type"]
    for name, least in mapping(item, "min").items():
        words = f"minimum {name} usage per {kind} is {least}"
        if name not in asked.requests:
            yield f"{words}.  No request is specified"
        elif found := _beyond(name, asked, parse_quantity(least).exceeds, ("request", "limit")):
            yield f"{words}, but {found}"
    for name, most in mapping(item, "max").items():
        words, bound = f"maximum {name} usage per {kind} is {most}", parse_quantity(most)
        needed = "limit" if limits_count else "request"
        if name not in (asked.limits if limits_count else asked.requests):
            yield f"{words}.  No {needed} is specified"
        elif found := _beyond(name, asked, partial(_exceeds, bound), ("limit", "request")):
            yield f"{words}, but {found}"
    for name, ratio in mapping(item, "maxLimitRequestRatio").items():
        yield from _ratio_violations(name, ratio, asked, kind)


def _exceeds(bound: Quantity, amount: Quantity) -> bool:
    return amount.exceeds(bound)


def _beyond(name: str, asked: _Asked, is_beyond: Callable[[Quantity], bool], order: tuple[str, ...]) -> str:
    amounts = {"request": (asked.requests, asked.written_requests), "limit": (asked.limits, asked.written_limits)}
    for what in order:
        parsed, written = amounts[what]
        if name in parsed and is_beyond(parsed[name]):
            return f"{what} is {written[name]}"
    return ""


def _ratio_violations(name: str, ratio: str, asked: _Asked, kind: str) -> Iterator[str]:
    words = f"{name} max limit to request ratio per {kind} is {ratio}"
    request, limit = asked.requests.get(name), asked.limits.get(name)
    if request is None or not request.amount:
        yield f"{words}, but no request is specified or request is 0"
    elif limit is None or not limit.amount:
        yield f"{words}, but no limit is specified or limit is 0"
    elif (provided := limit.nano() / request.nano()) > parse_quantity(ratio).nano() / 10**9:
        yield f"{words}, but provided ratio is {provided:f}"


def _together(found: list[str]) -> str:
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"

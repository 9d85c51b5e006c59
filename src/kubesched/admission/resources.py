"""Amounts of resources: how they are named, how much may be asked for, and the quality of service that follows."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.admission import names
from kubesched.admission.reading import mapping, quantities, sequence, text
from kubesched.admission.rules import NEGATIVE, Mistakes
from kubesched.api.kinds import Object
from kubesched.api.pod import Pod
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended, pod_requests

_PLAIN = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_COUNTED = frozenset(("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"))
_COMPUTE = (CPU, MEMORY)


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def check_amount(name: str, amount: Quantity, shown: Any, field: str, mistakes: Mistakes) -> None:
    """A resource's amount: none is negative, and some come only in whole pieces."""
    if amount.amount < 0:
        mistakes.invalid(field, str(shown), NEGATIVE)
    if amount.scale < 0 and (name in _COUNTED or is_extended(name)) and amount.milli() % 1000:
        mistakes.invalid(field, shown, "must be an integer")


def check_requirements(resources: Object, where: str, claims: frozenset[str], mistakes: Mistakes) -> None:
    """The `resources` of a container."""
    limits, requests = quantities(resources, "limits"), quantities(resources, "requests")
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            field = f"{where}.{key}[{name}]"
            if name not in _PLAIN:
                _check_container_resource(name, field, mistakes)
            check_amount(name, amount, resources[key][name], field, mistakes)
    _check_overcommit(resources, limits, requests, where, mistakes)
    both = limits.keys() | requests.keys()
    if not both & set(_COMPUTE) and any(map(is_huge_page, both)):
        mistakes.forbidden(where, "HugePages require cpu or memory")
    _check_claims(resources, where, claims, mistakes)


def _check_container_resource(name: str, field: str, mistakes: Mistakes) -> None:
    if words := names.label_key(name):
        mistakes.invalid_each(field, name, words)
    elif "/" not in name:
        if not is_huge_page(name):
            mistakes.invalid(field, name, "must be a standard resource type or fully qualified")
            mistakes.invalid(field, name, "must be a standard resource for containers")
    elif not is_extended(name):
        mistakes.invalid(field, name, "doesn't follow extended resource name standard")


def _check_overcommit(
    resources: Object, limits: dict[str, Quantity], requests: dict[str, Quantity], where: str, mistakes: Mistakes
) -> None:
    for name, amount in requests.items():
        limit = limits.get(name)
        flexible = not is_huge_page(name) and not is_extended(name)
        if limit is None:
            if not flexible:
                mistakes.required(f"{where}.limits", "Limit must be set for non overcommitable resources")
            continue
        words = f"{name} limit of {resources['limits'][name]}"
        asked = str(resources["requests"][name])
        if not flexible and (amount.exceeds(limit) or limit.exceeds(amount)):
            mistakes.invalid(f"{where}.requests", asked, f"must be equal to {words}")
        elif amount.exceeds(limit):
            mistakes.invalid(f"{where}.requests", asked, f"must be less than or equal to {words}")


def _check_claims(resources: Object, where: str, claims: frozenset[str], mistakes: Mistakes) -> None:
    seen = set()
    for i, claim in enumerate(sequence(resources, "claims")):
        field = f"{where}.claims[{i}]"
        name, request = text(claim, "name"), text(claim, "request")
        key = f"{name}/{request}" if request else name
        if not name:
            mistakes.required(field)
        elif key in seen or name in seen:
            mistakes.duplicate(field, key)
        elif name not in claims:
            mistakes.not_found(field, name)
        seen.add(key)


def request_what_is_limited(resources: Object) -> None:
    """What is limited but not requested is requested."""
    if resources.get("limits"):
        resources["requests"] = {**mapping(resources, "limits"), **mapping(resources, "requests")}


def request_for_the_whole(spec: Object) -> None:
    """A pod limited as a whole requests what its containers do together, or else what it is limited to."""
    resources = mapping(spec, "resources")
    limits = quantities(resources, "limits")
    if not limits:
        return
    requests = dict(mapping(resources, "requests"))
    if not all(name in requests for name in _COMPUTE):
        together = _requested_together(spec)
        if CPU in together:
            requests.setdefault(CPU, f"{together[CPU].milli()}m")
        if MEMORY in together:
            requests.setdefault(MEMORY, str(together[MEMORY].value()))
    resources["requests"] = {**{name: resources["limits"][name] for name in limits}, **requests}


def pod_requests_of(spec: Object) -> dict[str, Quantity]:
    """What a pod asks for as a whole: containers, overhead, or what is said for the pod itself."""
    return dict(pod_requests(msgspec.convert({"spec": spec}, Pod)))


def pod_limits(spec: Object) -> dict[str, Quantity]:
    """The limits of a pod as a whole: added up as requests are."""
    parts = {kind: [_limits_of(each) for each in sequence(spec, kind)] for kind in ("containers", "initContainers")}
    whole = {"resources": _limits_of(spec)["resources"]} if spec.get("resources") else {}
    return pod_requests_of({**parts, **whole, "overhead": mapping(spec, "overhead")})


def _limits_of(holder: Object) -> Object:
    limits = mapping(mapping(holder, "resources"), "limits")
    return {"resources": {"requests": limits}, "restartPolicy": text(holder, "restartPolicy")}


def _requested_together(spec: Object) -> dict[str, Quantity]:
    parts: Object = {}
    for kind in ("containers", "initContainers"):
        parts[kind] = []
        for container in sequence(spec, kind):
            resources = mapping(container, "resources")
            asked = {"requests": mapping(resources, "requests")}
            policy = text(container, "restartPolicy")
            parts[kind].append({"resources": asked, "restartPolicy": policy})
    return pod_requests(msgspec.convert({"spec": parts}, Pod))


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort; of a spec that was checked."""
    whole = spec.get("resources") or {}
    parts = [whole] if whole.get("requests") or whole.get("limits") else _of_containers(spec)
    guaranteed, anything = True, False
    for resources in parts:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        anything = anything or any(_positive(held, name) for held in (limits, requests) for name in _COMPUTE)
        guaranteed = guaranteed and all(
            _positive(limits, name) and (name not in requests or _same(requests[name], limits[name]))
            for name in _COMPUTE
        )
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _of_containers(spec: Object) -> list[Object]:
    both = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return [container.get("resources") or {} for container in both]


def _positive(amounts: Object, name: str) -> bool:
    return name in amounts and parse_quantity(amounts[name]).amount > 0


def _same(one: Any, other: Any) -> bool:
    a, b = parse_quantity(one), parse_quantity(other)
    return not a.exceeds(b) and not b.exceeds(a)

"""Resources of pods: their names and amounts, what a pod requests as a whole, and its quality of service."""

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
CONTAINER_KINDS = ("containers", "initContainers")


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def check_amount(name: str, amount: Quantity, shown: Any, field: str, mistakes: Mistakes) -> None:
    """No amount is negative, and extended and counted resources come in whole pieces only."""
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
    if reasons := names.label_key(name):
        mistakes.invalid_each(field, name, reasons)
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
        bound = f"{name} limit of {resources['limits'][name]}"
        request = str(resources["requests"][name])
        if not flexible and (amount.exceeds(limit) or limit.exceeds(amount)):
            mistakes.invalid(f"{where}.requests", request, f"must be equal to {bound}")
        elif amount.exceeds(limit):
            mistakes.invalid(f"{where}.requests", request, f"must be less than or equal to {bound}")


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
    """Request the limits of resources that have no request."""
    if resources.get("limits"):
        resources["requests"] = {**mapping(resources, "limits"), **mapping(resources, "requests")}


def fill_pod_level_requests(spec: Object) -> None:
    """A pod with pod-level limits requests what its containers request together, or else its limits."""
    resources = mapping(spec, "resources")
    limits = mapping(resources, "limits")
    if not limits:
        return
    requests = dict(mapping(resources, "requests"))
    if not all(name in requests for name in _COMPUTE):
        total = pod_requests_of({kind: sequence(spec, kind) for kind in CONTAINER_KINDS})
        if CPU in total:
            requests.setdefault(CPU, f"{total[CPU].milli()}m")
        if MEMORY in total:
            requests.setdefault(MEMORY, str(total[MEMORY].value()))
    resources["requests"] = {**limits, **requests}


def pod_requests_of(spec: Object) -> dict[str, Quantity]:
    """What a pod requests as a whole: the sum over its containers or the pod-level requests, and the overhead."""
    return dict(pod_requests(msgspec.convert({"spec": spec}, Pod)))


def pod_limits(spec: Object) -> dict[str, Quantity]:
    """The limits of a pod as a whole: added up as requests are."""
    containers = {kind: [_limits_as_requests(each) for each in sequence(spec, kind)] for kind in CONTAINER_KINDS}
    pod_level = {"resources": _limits_as_requests(spec)["resources"]} if spec.get("resources") else {}
    return pod_requests_of({**containers, **pod_level, "overhead": mapping(spec, "overhead")})


def _limits_as_requests(holder: Object) -> Object:
    limits = mapping(mapping(holder, "resources"), "limits")
    return {"resources": {"requests": limits}, "restartPolicy": text(holder, "restartPolicy")}


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort; of a spec that was checked."""
    pod_level = mapping(spec, "resources")
    if pod_level.get("requests") or pod_level.get("limits"):
        holders = [pod_level]
    else:
        holders = [mapping(container, "resources") for kind in CONTAINER_KINDS for container in sequence(spec, kind)]
    is_guaranteed, has_amounts = True, False
    for resources in holders:
        limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
        has_amounts = has_amounts or any(
            _is_positive(amounts, name) for amounts in (limits, requests) for name in _COMPUTE
        )
        is_guaranteed = is_guaranteed and all(
            _is_positive(limits, name) and (name not in requests or _are_equal(requests[name], limits[name]))
            for name in _COMPUTE
        )
    if not has_amounts:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _is_positive(amounts: Object, name: str) -> bool:
    return name in amounts and parse_quantity(amounts[name]).amount > 0


def _are_equal(request: Any, limit: Any) -> bool:
    return parse_quantity(request).nano() == parse_quantity(limit).nano()

"""Dynamic resource allocation: claims on devices, their classes, and the slices that publish them."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.reading import fill, mapping, sequence, text
from kubesched.admission.rules import NEGATIVE, NOT_POSITIVE, Mistakes, Rules
from kubesched.admission.selectors import check_key, check_node_selector
from kubesched.api.kinds import Object
from kubesched.api.quantity import parse_quantity

_REQUESTS, _SELECTORS, _DEVICES, _RESERVED = 32, 32, 128, 256
_EXPRESSION = 10 * 1024
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_MODES = ("All", "ExactCount")
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


# -- claims -----------------------------------------------------------------------------------------------------------


def _fill_claim_spec(spec: Object) -> None:
    for request in sequence(mapping(spec, "devices"), "requests"):
        exactly = request.get("exactly")
        for alternative in (*([] if exactly is None else [exactly]), *sequence(request, "firstAvailable")):
            fill(alternative, "allocationMode", "ExactCount")
            if alternative["allocationMode"] == "ExactCount" and not alternative.get("count"):
                alternative["count"] = 1
            for toleration in sequence(alternative, "tolerations"):
                fill(toleration, "operator", "Equal")


def _check_claim_spec(spec: Object, where: str, mistakes: Mistakes) -> None:
    devices, field = mapping(spec, "devices"), f"{where}.devices"
    requests = sequence(devices, "requests")
    if len(requests) > _REQUESTS:
        mistakes.too_many(f"{field}.requests", len(requests), _REQUESTS)
    request_names: set[str] = set()
    for i, request in enumerate(requests):
        at = f"{field}.requests[{i}]"
        name = text(request, "name")
        mistakes.required_valid(f"{at}.name", name, names.label)
        mistakes.unique(f"{at}.name", name, request_names)
        request_names.update(f"{name}/{subrequest}" for subrequest in _check_request(request, at, mistakes))
    for key in ("constraints", "config"):
        for i, item in enumerate(sequence(devices, key)):
            at = f"{field}.{key}[{i}]"
            for j, name in enumerate(sequence(item, "requests")):
                if name not in request_names:
                    mistakes.invalid(f"{at}.requests[{j}]", name, _UNKNOWN_REQUEST)
            if key == "constraints" and not (text(item, "matchAttribute") or text(item, "distinctAttribute")):
                mistakes.required(f"{at}.matchAttribute")


def _check_request(request: Object, where: str, mistakes: Mistakes) -> list[str]:
    """The names of its subrequests, if there are any."""
    exactly = request.get("exactly")
    alternatives = sequence(request, "firstAvailable")
    if exactly is None and not alternatives:
        mistakes.required(where, _ONE_KIND)
    if exactly is not None and alternatives:
        mistakes.invalid(where, None, f"{_ONE_KIND}, but multiple fields are set")
    if exactly is not None:
        _check_device_request(exactly, f"{where}.exactly", mistakes)
    for i, alternative in enumerate(alternatives):
        at = f"{where}.firstAvailable[{i}]"
        mistakes.required_valid(f"{at}.name", text(alternative, "name"), names.label)
        _check_device_request(alternative, at, mistakes)
    return [text(alternative, "name") for alternative in alternatives]


def _check_device_request(request: Object, where: str, mistakes: Mistakes) -> None:
    mistakes.required_valid(f"{where}.deviceClassName", text(request, "deviceClassName"), names.subdomain)
    _check_selectors(request, where, mistakes)
    mode, count = text(request, "allocationMode"), request.get("count") or 0
    if mode not in _MODES:
        mistakes.unsupported(f"{where}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        mistakes.invalid(f"{where}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        mistakes.invalid(f"{where}.count", count, NOT_POSITIVE)


def _check_selectors(holder: Object, where: str, mistakes: Mistakes) -> None:
    selectors = sequence(holder, "selectors")
    if len(selectors) > _SELECTORS:
        mistakes.too_many(f"{where}.selectors", len(selectors), _SELECTORS)
    for i, selector in enumerate(selectors):
        at = f"{where}.selectors[{i}].cel"
        cel = selector.get("cel")
        if cel is None:
            mistakes.required(at)
        elif not text(cel, "expression"):
            mistakes.required(f"{at}.expression")
        elif len(cel["expression"]) > _EXPRESSION:
            mistakes.too_long(f"{at}.expression", _EXPRESSION)


def _write_status(new: Object, old: Object, mistakes: Mistakes) -> Object:
    """An allocation is made or taken back as a whole; only allocated claims are reserved."""
    status = mapping(new, "status")
    allocation, old_allocation = status.get("allocation"), mapping(old, "status").get("allocation")
    if allocation is not None and old_allocation is not None:
        mistakes.immutable("status.allocation", allocation, old_allocation)
    reserved = sequence(status, "reservedFor")
    if reserved and allocation is None:
        mistakes.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    if len(reserved) > _RESERVED:
        mistakes.too_many("status.reservedFor", len(reserved), _RESERVED)
    for i, consumer in enumerate(reserved):
        for key in ("resource", "name", "uid"):
            mistakes.not_empty(f"status.reservedFor[{i}].{key}", text(consumer, key))
    return {**old, "metadata": new["metadata"], "status": status}


# -- slices -----------------------------------------------------------------------------------------------------------


def _check_slice(slice_: Object, mistakes: Mistakes) -> None:
    spec = mapping(slice_, "spec")
    mistakes.required_valid("spec.driver", text(spec, "driver"), names.subdomain)
    _check_pool(mapping(spec, "pool"), mistakes)
    places = [key for key in _PLACES if spec.get(key) not in (None, False, "")]
    if not places:
        mistakes.required("spec", _ONE_PLACE)
    elif len(places) > 1:
        shown = ", ".join(f"`{key}`" for key in places)
        mistakes.invalid("spec", f"{{{shown}}}", f"{_ONE_PLACE}, but multiple fields are set")
    selector = spec.get("nodeSelector")
    if selector is not None:
        check_node_selector(selector, "spec.nodeSelector", mistakes)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        mistakes.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    _check_devices(sequence(spec, "devices"), mistakes)


def _check_pool(pool: Object, mistakes: Mistakes) -> None:
    mistakes.not_empty("spec.pool.name", text(pool, "name"))
    count, generation = pool.get("resourceSliceCount"), pool.get("generation")
    if (count or 0) <= 0:
        mistakes.invalid("spec.pool.resourceSliceCount", count or 0, NOT_POSITIVE)
    if (generation or 0) < 0:
        mistakes.invalid("spec.pool.generation", generation, "must be greater than or equal to zero")


def _check_devices(devices: list[Object], mistakes: Mistakes) -> None:
    if len(devices) > _DEVICES:
        mistakes.too_many("spec.devices", len(devices), _DEVICES)
    seen: set[str] = set()
    for i, device in enumerate(devices):
        where = f"spec.devices[{i}]"
        name = text(device, "name")
        mistakes.required_valid(f"{where}.name", name, names.label)
        mistakes.unique(f"{where}.name", name, seen)
        for key, attribute in mapping(device, "attributes").items():
            _check_attribute(attribute, f"{where}.attributes[{key}]", mistakes)
        capacities = mapping(device, "capacity")
        for key in capacities:
            at, capacity = f"{where}.capacity[{key}]", mapping(capacities, key)
            value = capacity.get("value")
            if value is None or parse_quantity(value).amount < 0:
                mistakes.invalid(f"{at}.value", str(value), NEGATIVE)
            _check_request_policy(mapping(capacity, "requestPolicy"), f"{at}.requestPolicy", mistakes)
        for j, taint in enumerate(sequence(device, "taints")):
            check_key(taint, "key", f"{where}.taints[{j}]", mistakes)
            mistakes.one_of(f"{where}.taints[{j}].effect", text(taint, "effect"), _EFFECTS)


def _check_request_policy(policy: Object, where: str, mistakes: Mistakes) -> None:
    """How much of a capacity may be asked for: some values, or a range."""
    allowed = policy.get("validRange")
    if policy.get("default") is None and (policy.get("validValues") or allowed is not None):
        which = "validValues" if policy.get("validValues") else "validRange"
        mistakes.required(f"{where}.default", f"required when {which} is defined")
    if allowed is None:
        return
    if allowed.get("min") is None:
        mistakes.required(f"{where}.validRange.min", "required when validRange is defined")
    if allowed.get("step") is not None and parse_quantity(allowed["step"]).value() < 1:
        mistakes.invalid(f"{where}.validRange.step", str(allowed["step"]), NOT_POSITIVE)


def _check_attribute(attribute: object, where: str, mistakes: Mistakes) -> None:
    kinds = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
    if not isinstance(attribute, dict) or sum(attribute.get(kind) is not None for kind in kinds) != 1:
        mistakes.required(where, "exactly one value must be specified")


CLAIM = Rules(
    fills={"spec": {}},
    defaults=lambda claim: _fill_claim_spec(claim["spec"]),
    check=lambda claim, mistakes: _check_claim_spec(claim["spec"], "spec", mistakes),
    immutable=("spec",),
    subresource_writes={"status": _write_status},
)
TEMPLATE = Rules(
    fills={"spec": {}},
    defaults=lambda template: _fill_claim_spec(mapping(template["spec"], "spec")),
    check=lambda template, mistakes: _check_claim_spec(mapping(template["spec"], "spec"), "spec.spec", mistakes),
    immutable=("spec",),
)
CLASS = Rules(
    check=lambda device_class, mistakes: _check_selectors(mapping(device_class, "spec"), "spec", mistakes),
    counts_generations=True,
)
SLICE = Rules(check=_check_slice, immutable=("spec.pool.name", "spec.driver", "spec.nodeName"), counts_generations=True)

"""Dynamic resource allocation: claims on devices, their classes, and the slices that publish them."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import NEGATIVE, NOT_POSITIVE, Faults
from kubesched.sandbox.admission.reading import (
    fill,
    flag,
    integer,
    mapping,
    optional_mapping,
    quantity,
    records,
    text,
    texts,
)
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.selectors import check_node_selector
from kubesched.sandbox.admission.workloads import spec_to_fill

_REQUESTS, _SELECTORS, _DEVICES, _RESERVED = 32, 32, 128, 256
_EXPRESSION = 10 * 1024
_MODES = ("All", "ExactCount")
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


# -- claims -----------------------------------------------------------------------------------------------------------


def _fill_claim_spec(spec: Object, where: str) -> None:
    for request in records(mapping(spec, "devices", where), "requests", f"{where}.devices"):
        exactly = optional_mapping(request, "exactly", where)
        for each in (*([] if exactly is None else [exactly]), *records(request, "firstAvailable", where)):
            fill(each, "allocationMode", "ExactCount")
            if each["allocationMode"] == "ExactCount" and not integer(each, "count", where):
                each["count"] = 1
            for toleration in records(each, "tolerations", where):
                fill(toleration, "operator", "Equal")


def _check_claim_spec(spec: Object, where: str, faults: Faults) -> None:
    devices, field = mapping(spec, "devices", where), f"{where}.devices"
    requests = records(devices, "requests", field)
    if len(requests) > _REQUESTS:
        faults.too_many(f"{field}.requests", len(requests), _REQUESTS)
    known: set[str] = set()
    for i, request in enumerate(requests):
        at = f"{field}.requests[{i}]"
        name = _check_request_name(request, at, faults)
        if name in known:
            faults.duplicate(f"{at}.name", name)
        known.add(name)
        known.update(f"{name}/{sub}" for sub in _check_request(request, at, faults))
    for key in ("constraints", "config"):
        for i, each in enumerate(records(devices, key, field)):
            at = f"{field}.{key}[{i}]"
            for j, name in enumerate(texts(each, "requests", at)):
                if name not in known:
                    why = "must be the name of a request in the claim"
                    faults.invalid(
                        f"{at}.requests[{j}]", name, f"{why} or the name of a request and a subrequest separated by '/'"
                    )
            if key == "constraints" and not (text(each, "matchAttribute", at) or text(each, "distinctAttribute", at)):
                faults.required(f"{at}.matchAttribute")


def _check_request_name(request: Object, where: str, faults: Faults) -> str:
    name = text(request, "name", where)
    if not name:
        faults.required(f"{where}.name")
    else:
        faults.invalid_each(f"{where}.name", name, names.label(name))
    return name


def _check_request(request: Object, where: str, faults: Faults) -> list[str]:
    """The names of the alternatives, if there are any."""
    exactly = optional_mapping(request, "exactly", where)
    alternatives = records(request, "firstAvailable", where)
    if exactly is None and not alternatives:
        faults.required(where, _ONE_KIND)
    if exactly is not None and alternatives:
        faults.invalid(where, None, f"{_ONE_KIND}, but multiple fields are set")
    if exactly is not None:
        _check_device_request(exactly, f"{where}.exactly", faults)
    subs: list[str] = []
    for i, alternative in enumerate(alternatives):
        at = f"{where}.firstAvailable[{i}]"
        subs.append(_check_request_name(alternative, at, faults))
        _check_device_request(alternative, at, faults)
    return subs


def _check_device_request(request: Object, where: str, faults: Faults) -> None:
    name = text(request, "deviceClassName", where)
    if not name:
        faults.required(f"{where}.deviceClassName")
    else:
        faults.invalid_each(f"{where}.deviceClassName", name, names.subdomain(name))
    _check_selectors(request, where, faults)
    mode, count = text(request, "allocationMode", where), integer(request, "count", where) or 0
    if mode not in _MODES:
        faults.unsupported(f"{where}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        faults.invalid(f"{where}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        faults.invalid(f"{where}.count", count, NOT_POSITIVE)
    flag(request, "adminAccess", where)


def _check_selectors(holder: Object, where: str, faults: Faults) -> None:
    selectors = records(holder, "selectors", where)
    if len(selectors) > _SELECTORS:
        faults.too_many(f"{where}.selectors", len(selectors), _SELECTORS)
    for i, selector in enumerate(selectors):
        at = f"{where}.selectors[{i}].cel"
        cel = optional_mapping(selector, "cel", where)
        if cel is None:
            faults.required(at)
        elif not text(cel, "expression", at):
            faults.required(f"{at}.expression")
        elif len(cel["expression"]) > _EXPRESSION:
            faults.too_long(f"{at}.expression", _EXPRESSION)


def _fill_claim(claim: Object) -> None:
    _fill_claim_spec(spec_to_fill(claim), "spec")


def _check_claim(claim: Object, faults: Faults) -> None:
    _check_claim_spec(claim["spec"], "spec", faults)


def _spec_stays(new: Object, old: Object, faults: Faults) -> None:
    faults.immutable("spec", new.get("spec"), old.get("spec"))


def _with_status(new: Object, old: Object, faults: Faults) -> Object:
    """An allocation is made or taken back as a whole; only allocated claims are reserved."""
    status, before = mapping(new, "status", ""), mapping(old, "status", "")
    allocation, old_allocation = (optional_mapping(each, "allocation", "status") for each in (status, before))
    if allocation is not None and old_allocation is not None:
        faults.immutable("status.allocation", allocation, old_allocation)
    reserved = records(status, "reservedFor", "status")
    if reserved and allocation is None:
        faults.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    if len(reserved) > _RESERVED:
        faults.too_many("status.reservedFor", len(reserved), _RESERVED)
    for i, consumer in enumerate(reserved):
        for key in ("resource", "name", "uid"):
            if not text(consumer, key, "status.reservedFor"):
                faults.required(f"status.reservedFor[{i}].{key}")
    return {**old, "metadata": new["metadata"], "status": status}


def _fill_template(template: Object) -> None:
    _fill_claim_spec(_template_spec(template), "spec.spec")


def _template_spec(template: Object) -> Object:
    return mapping(spec_to_fill(template), "spec", "spec")


def _check_template(template: Object, faults: Faults) -> None:
    _check_claim_spec(_template_spec(template), "spec.spec", faults)


def _check_class(device_class: Object, faults: Faults) -> None:
    _check_selectors(mapping(device_class, "spec", ""), "spec", faults)


# -- slices -----------------------------------------------------------------------------------------------------------


def _check_slice(slice_: Object, faults: Faults) -> None:
    spec = mapping(slice_, "spec", "")
    driver = text(spec, "driver", "spec")
    if not driver:
        faults.required("spec.driver")
    else:
        faults.invalid_each("spec.driver", driver, names.subdomain(driver))
    _check_pool(mapping(spec, "pool", "spec"), faults)
    places = [key for key in _PLACES if spec.get(key) not in (None, False, "")]
    if not places:
        faults.required("spec", _ONE_PLACE)
    elif len(places) > 1:
        told = ", ".join(f"`{key}`" for key in places)
        faults.invalid("spec", f"{{{told}}}", f"{_ONE_PLACE}, but multiple fields are set")
    text(spec, "nodeName", "spec")
    selector = optional_mapping(spec, "nodeSelector", "spec")
    if selector is not None:
        check_node_selector(selector, "spec.nodeSelector", faults)
    _check_devices(records(spec, "devices", "spec"), faults)


def _check_pool(pool: Object, faults: Faults) -> None:
    if not text(pool, "name", "spec.pool"):
        faults.required("spec.pool.name")
    count, generation = integer(pool, "resourceSliceCount", "spec.pool"), integer(pool, "generation", "spec.pool")
    if (count or 0) <= 0:
        faults.invalid("spec.pool.resourceSliceCount", count or 0, NOT_POSITIVE)
    if (generation or 0) < 0:
        faults.invalid("spec.pool.generation", generation, "must be greater than or equal to zero")


def _check_devices(devices: list[Object], faults: Faults) -> None:
    if len(devices) > _DEVICES:
        faults.too_many("spec.devices", len(devices), _DEVICES)
    seen: set[str] = set()
    for i, device in enumerate(devices):
        where = f"spec.devices[{i}]"
        name = _check_request_name(device, where, faults)
        if name in seen:
            faults.duplicate(f"{where}.name", name)
        seen.add(name)
        for key, attribute in mapping(device, "attributes", where).items():
            _check_attribute(attribute, f"{where}.attributes[{key}]", faults)
        capacities = mapping(device, "capacity", where)
        for key in capacities:
            at = f"{where}.capacity[{key}]"
            value = mapping(capacities, key, f"{where}.capacity").get("value")
            if value is None or quantity(value, at).amount < 0:
                faults.invalid(f"{at}.value", str(value), NEGATIVE)


def _check_attribute(attribute: object, where: str, faults: Faults) -> None:
    kinds = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
    given = [key for key in kinds if isinstance(attribute, dict) and attribute.get(key) is not None]
    if len(given) != 1:
        faults.required(where, "exactly one value must be specified")


def _slice_stays(new: Object, old: Object, faults: Faults) -> None:
    spec, before = mapping(new, "spec", ""), mapping(old, "spec", "")
    pool, old_pool = mapping(spec, "pool", "spec"), mapping(before, "pool", "spec")
    faults.immutable("spec.pool.name", pool.get("name"), old_pool.get("name"))
    for key in ("driver", "nodeName"):
        faults.immutable(f"spec.{key}", spec.get(key), before.get(key))


CLAIM = Rules(defaults=_fill_claim, check=_check_claim, check_update=_spec_stays, takes={"status": _with_status})
TEMPLATE = Rules(defaults=_fill_template, check=_check_template, check_update=_spec_stays)
CLASS = Rules(check=_check_class, counts_generations=True)
SLICE = Rules(check=_check_slice, check_update=_slice_stays, counts_generations=True)

"""Price lists: types of nodes with what they offer and cost, from CSV or YAML; Karpenter's NodePools and NodeOverlays.

CSV has a header with `type, cpu, memory, price`, and optionally `gpus`, `labels` (`a=b;c=d`), `pods` and `max`. YAML
has a list of mappings with the same keys, where `labels` is a mapping and `resources` may name further resources.
Where there are NodePools, only types that one of them allows can be bought, with its labels and taints.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import yaml

from kubesched.api.errors import UserError, located
from kubesched.api.node import Taint
from kubesched.api.quantity import QuantityError, parse_quantity
from kubesched.api.selectors import Requirement
from kubesched.simulate.nodes import INSTANCE_TYPE

GPU = "nvidia.com/gpu"
NODE_POOL = "karpenter.sh/nodepool"
_KEYS = ("type", "cpu", "memory", "gpus", "pods", "labels", "price", "max", "resources")
_NEEDED = ("type", "cpu", "memory", "price")
_MOST_VARIANTS = 16
"""Of one type in one NodePool: zones and the like of which a node has one."""
_DEFAULT_PODS = "110"


class PriceError(UserError):
    """A price list that cannot be read."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A type of nodes that can be bought."""

    name: str
    allocatable: Mapping[str, str]
    price: float
    """Per hour, in the currency of the list."""
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    most: int | None = None
    """How many can be bought; None for any number."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """What can be bought."""

    types: tuple[InstanceType, ...]

    @property
    def by_type(self) -> dict[str, float]:
        """The price of each type; the least, where it can be bought in several ways."""
        prices: dict[str, float] = {}
        for type_ in self.types:
            name = type_.labels.get(INSTANCE_TYPE, type_.name)
            prices[name] = min(type_.price, prices.get(name, type_.price))
        return prices


def read_prices(files: Iterable[str]) -> PriceList:
    """The types of all files, with NodePools and NodeOverlays applied. Raises PriceError."""
    return price_list(entry for file in files for entry in _entries(file))


def price_list(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> PriceList:
    """The types of these entries, each with the place where it is, with NodePools and NodeOverlays applied."""
    types, pools, overlays = list[InstanceType](), list[Mapping[str, Any]](), list[Mapping[str, Any]]()
    for where, entry in entries:
        match entry.get("kind"):
            case "NodePool":
                pools.append(entry)
            case "NodeOverlay":
                overlays.append(entry)
            case _:
                types.append(_type(where, entry))
    names = [type_.name for type_ in types]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PriceError(*(f"type {name!r} is listed more than once" for name in twice))
    if not types:
        raise PriceError("the price list has no types: expected type, cpu, memory and price of each")
    priced = [_with_overlay(type_, overlays) for type_ in types]
    return PriceList(tuple(_in_pools(priced, pools)) if pools else tuple(priced))


def _entries(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise PriceError(f"{file}: {reason}") from None
    with located(file, PriceError):
        for where, entry in _csv(text) if file.endswith(".csv") else _documents(text):
            yield f"{file}: {where}", entry


def _csv(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    columns = [name.strip() for name in reader.fieldnames or ()]
    if missing := [name for name in _NEEDED if name not in columns]:
        raise PriceError(f"line 1: expected the columns {', '.join(_NEEDED)}; {', '.join(missing)} not found")
    for row in reader:
        entry: dict[str, Any] = {(key or "").strip(): (value or "").strip() for key, value in row.items() if key}
        pairs = [pair.partition("=") for pair in entry.get("labels", "").split(";") if pair]
        entry["labels"] = {key.strip(): value.strip() for key, _, value in pairs}
        yield f"line {reader.line_num}", {key: value for key, value in entry.items() if value != ""}


def _documents(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise PriceError(f"not YAML: {str(error).splitlines()[0]}") from None
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "List":
            document = document.get("items")
        elif isinstance(document, dict) and "types" in document:
            document = document["types"]
        for i, entry in enumerate(document if isinstance(document, list) else [document] if document else []):
            if not isinstance(entry, dict):
                raise PriceError(f"entry {i + 1}: expected a mapping, got {entry!r}")
            yield f"entry {i + 1}", entry


def _type(where: str, entry: Mapping[str, Any]) -> InstanceType:
    missing = [key for key in _NEEDED if entry.get(key) in (None, "")]
    unknown = [key for key in entry if key not in _KEYS]
    mistakes = [f"{key} is missing" for key in missing] + [f"unknown key {key!r}" for key in unknown]
    resources = {"cpu": entry.get("cpu"), "memory": entry.get("memory"), "pods": entry.get("pods", _DEFAULT_PODS)}
    if entry.get("gpus"):
        resources[GPU] = entry["gpus"]
    resources |= entry.get("resources") or {}
    for name, amount in resources.items():
        try:
            parse_quantity(str(amount)) if name not in missing else None
        except QuantityError as error:
            mistakes.append(f"{name}: {error}")
    price, most = _number(entry.get("price"), "price", mistakes), _number(entry.get("max"), "max", mistakes)
    if mistakes:
        raise PriceError(*(f"{where}: {mistake}" for mistake in mistakes))
    name = str(entry["type"])
    labels = {INSTANCE_TYPE: name, **{str(key): str(value) for key, value in (entry.get("labels") or {}).items()}}
    allocatable = {key: str(value) for key, value in resources.items()}
    return InstanceType(name, allocatable, price or 0.0, labels, most=None if most is None else int(most))


def _number(value: Any, field: str, mistakes: list[str]) -> float | None:
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        mistakes.append(f"{field}: expected a number of at least 0, got {value!r}")
    return number


def _in_pools(types: Sequence[InstanceType], pools: Sequence[Mapping[str, Any]]) -> Iterator[InstanceType]:
    """Each type as each NodePool would make it, in every zone and the like that the pool names."""
    for pool in pools:
        name = str((pool.get("metadata") or {}).get("name", ""))
        template = (pool.get("spec") or {}).get("template") or {}
        spec, meta = template.get("spec") or {}, template.get("metadata") or {}
        requirements = _requirements(spec.get("requirements"))
        taints = tuple(
            Taint(key=str(taint["key"]), effect=taint["effect"], value=str(taint.get("value") or ""))
            for taint in spec.get("taints") or ()
        )
        for type_ in types:
            labels = {**type_.labels, **(meta.get("labels") or {}), NODE_POOL: name}
            own = [need for need in requirements if need.key in labels]
            others = [need for need in requirements if need.key not in labels and need.operator == "In"]
            if not all(need.accepts(labels.get(need.key)) for need in own):
                continue
            choices = product(*(sorted(need.values) for need in others))
            for chosen in islice(choices, _MOST_VARIANTS):
                more = {need.key: value for need, value in zip(others, chosen)}
                title = "/".join((name, type_.name, *more.values()))
                yield replace(type_, name=title, labels={**labels, **more}, taints=taints)


def _with_overlay(type_: InstanceType, overlays: Sequence[Mapping[str, Any]]) -> InstanceType:
    """The type with the price and capacity of the overlay of the greatest weight that is about it."""
    specs = [overlay.get("spec") or {} for overlay in overlays]
    for spec in sorted(specs, key=lambda spec: -int(spec.get("weight") or 0)):
        needs = _requirements(spec.get("requirements"))
        if not all(need.accepts(type_.labels.get(need.key)) for need in needs):
            continue
        more = {str(name): str(amount) for name, amount in (spec.get("capacity") or {}).items()}
        return replace(type_, price=_adjusted_price(type_.price, spec), allocatable={**type_.allocatable, **more})
    return type_


def _adjusted_price(price: float, spec: Mapping[str, Any]) -> float:
    """`price` takes the place of the price; `priceAdjustment` is added to it, as a number or a percentage."""
    mistakes: list[str] = []
    if spec.get("price") not in (None, ""):
        price = _number(spec["price"], "NodeOverlay: price", mistakes) or 0.0
    elif change := str(spec.get("priceAdjustment") or ""):
        try:
            number = float(change.removesuffix("%"))
            price = price * (1 + number / 100) if change.endswith("%") else price + number
        except ValueError:
            mistakes.append(f"NodeOverlay: priceAdjustment: expected -10% or -0.1, got {change!r}")
    if mistakes:
        raise PriceError(*mistakes)
    return max(price, 0.0)


def _requirements(requirements: Any) -> list[Requirement]:
    return [
        Requirement(str(need["key"]), str(need["operator"]), frozenset(map(str, need.get("values") or ())))
        for need in requirements or ()
    ]

"""Lists (Kubernetes' own methods and the lists extension), sets made of lists, and values that may be missing."""

from __future__ import annotations

from functools import cmp_to_key, partial, reduce
from itertools import pairwise

from kubesched.cel import costs
from kubesched.cel.errors import TOO_EXPENSIVE, AbsorbableError, CostLimitError, no_such_overload
from kubesched.cel.functions import Mismatch, function, functions, method, methods
from kubesched.cel.operators import add
from kubesched.cel.values import MAPS, NONE, CelDuration, Optional, Uint, Value, compare, has_order, is_equal

_MOST_ATTRIBUTE_VALUES = 48
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": CelDuration(0)}


def _is_among(elements: list[Value], element: Value) -> bool:
    return any(is_equal(element, candidate) for candidate in elements)


def _are_among(elements: list[Value], candidates: list[Value]) -> bool:
    return all(_is_among(elements, element) for element in candidates)


def _place(elements: list[Value], element: Value, step: int) -> int:
    return next((at for at in range(len(elements))[::step] if is_equal(elements[at], element)), -1)


def _sum(zero: Value, elements: list[Value]) -> Value:
    return reduce(add, elements, zero)


def _extreme(name: str, better: int, elements: list[Value]) -> Value:
    if not elements:
        raise AbsorbableError(f"{name} called on empty list")
    return reduce(lambda best, element: element if compare(element, best, name) == better else best, elements)


methods(
    {
        "list(A).indexOf(A) -> int": lambda elements, wanted: _place(elements, wanted, 1),
        "list(A).lastIndexOf(A) -> int": lambda elements, wanted: _place(elements, wanted, -1),
    }
    | {f"list({kind}).sum() -> {kind}": partial(_sum, zero) for kind, zero in _ZEROS.items()}
    | {f"list({kind}).max() -> {kind}": partial(_extreme, "max", 1) for kind in _COMPARABLE}
    | {f"list({kind}).min() -> {kind}": partial(_extreme, "min", -1) for kind in _COMPARABLE},
    price=costs.traverse_first,
)
methods({"list(T).reverse() -> list(T)": lambda elements: elements[::-1]}, price=costs.write_list)
functions(
    {
        "sets.contains(list(T), list(T)) -> bool": _are_among,
        "sets.intersects(list(T), list(T)) -> bool": lambda left, right: any(_is_among(right, item) for item in left),
    },
    price=costs.every_pair,
)


@method(*(f"list({kind}).isSorted() -> bool" for kind in _COMPARABLE), price=costs.traverse_first)
def is_sorted(elements: list[Value]) -> bool:
    """Whether none is larger than the next; what cannot be compared is no obstacle."""
    if not all(map(has_order, elements)):
        raise no_such_overload()
    return not any(_above(left, right) for left, right in pairwise(elements))


def _above(left: Value, right: Value) -> bool:
    try:
        return compare(left, right, "_>_") > 0
    except AbsorbableError:
        return False


@method("dyn.includes(dyn) -> bool", price=costs.traverse_first)
def includes(holder: Value, element: Value) -> bool:
    """Whether it is in the list, or is the value itself."""
    elements = holder if type(holder) is list else [holder]
    if any(is_equal(candidate, element) for candidate in elements[:_MOST_ATTRIBUTE_VALUES]):
        return True
    if len(elements) > _MOST_ATTRIBUTE_VALUES:
        message = f"'includes' function cannot be applied to lists longer than {_MOST_ATTRIBUTE_VALUES} values"
        raise AbsorbableError(message)
    return False


@method("list(T).slice(int, int) -> list(T)", price=costs.write_list)
def slice_list(elements: list[Value], start: int, end: int) -> list[Value]:
    """From one place up to another."""
    if start < 0 or end < 0:
        raise AbsorbableError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise AbsorbableError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise AbsorbableError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


@method(
    "list(list(T)).flatten() -> list(T)",
    "list(dyn).flatten(int) -> list(dyn)",
    price=costs.write_list,
    mismatch=Mismatch.PLAIN,
)
def flatten(elements: list[Value], depth: int = 1) -> list[Value]:
    """Lists in the list replaced by what is in them, as many levels down as asked for."""
    if depth < 0:
        raise AbsorbableError("level must be non-negative")
    flat: list[Value] = []
    for element in elements:
        flat.extend(flatten(element, depth - 1) if type(element) is list and depth else [element])
    return flat


@method(
    *(f"list(T).@sortByAssociatedKeys(list({kind})) -> list(T)" for kind in _COMPARABLE),
    price=costs.sorting,
)
def sort_by_keys(elements: list[Value], keys: list[Value]) -> list[Value]:
    """In ascending order of their keys; what sortBy() comes to."""
    if not elements:
        return elements
    if not has_order(keys[0]):
        raise AbsorbableError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise AbsorbableError("list elements must have the same type")
    rank = cmp_to_key(lambda left, right: compare(left, right, "_<_"))
    return [elements[at] for at in sorted(range(len(elements)), key=lambda at: rank(keys[at]))]


@method(*(f"list({kind}).sort() -> list({kind})" for kind in _COMPARABLE), price=costs.sorting)
def sort(elements: list[Value]) -> list[Value]:
    """In ascending order."""
    return sort_by_keys(elements, elements)


@function("lists.range(int) -> list(int)", price=costs.write_list)
def number_range(count: int) -> list[int]:
    """The numbers from 0."""
    if count < 0:
        raise AbsorbableError(f"lists.range: size must be non-negative, got {count}")
    if count > costs.COST_LIMIT:
        raise CostLimitError(TOO_EXPENSIVE)
    return list(range(count))


@function("sets.equivalent(list(T), list(T)) -> bool", price=costs.every_pair_twice)
def equivalent(left: list[Value], right: list[Value]) -> bool:
    """Whether both have the same elements, however often."""
    return _are_among(left, right) and _are_among(right, left)


@method("list(T).distinct() -> list(T)", price=costs.every_pair_twice)
def distinct(elements: list[Value]) -> list[Value]:
    """Each value once, where it came first."""
    unique: list[Value] = []
    for element in elements:
        if not _is_among(unique, element):
            unique.append(element)
    return unique


functions(
    {
        "optional.none() -> optional(V)": lambda: NONE,
        "optional.of(V) -> optional(V)": lambda value: Optional(value, True),
        "optional.ofNonZeroValue(V) -> optional(V)": lambda value: NONE if _is_zero(value) else Optional(value, True),
    }
)
methods(
    {
        "list(V).first() -> optional(V)": lambda elements: Optional(elements[0], True) if elements else NONE,
        "list(V).last() -> optional(V)": lambda elements: Optional(elements[-1], True) if elements else NONE,
        "optional(V).hasValue() -> bool": lambda optional: optional.present,
        # These are declared for their types; the compiler evaluates the other side only if needed.
        "optional(V).or(optional(V)) -> optional(V)": lambda optional, other: optional if optional.present else other,
        "optional(V).orValue(V) -> V": lambda optional, other: optional.value if optional.present else other,
    }
)


def _is_zero(value: Value) -> bool:
    kind = type(value)
    if kind in (bool, int, Uint, float, str, bytes, list, *MAPS):
        return not value
    if kind is CelDuration:
        return bool(value.nanoseconds == 0)
    return value is None or (kind is Optional and not value.present)


@method("optional(V).value() -> V")
def value_of(optional: Optional) -> Value:
    """The value there has to be."""
    if not optional.present:
        raise AbsorbableError("optional.none() dereference")
    return optional.value


@function("optional.unwrap(list(optional(V))) -> list(V)")
@method("list(optional(V)).unwrapOpt() -> list(V)")
def unwrap(optionals: list[Value]) -> list[Value]:
    """The values there are."""
    for optional in optionals:
        if type(optional) is not Optional:
            raise AbsorbableError(f"value {optional} is not optional")
    return [optional.value for optional in optionals if optional.present]

"""Lists: Kubernetes' own methods, the lists extension and sets made of lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise

from kubesched.cel import costs
from kubesched.cel.errors import TOO_EXPENSIVE, AbsorbableError, CostLimitError, no_such_overload
from kubesched.cel.functions import Mismatch, function, method
from kubesched.cel.operators import add
from kubesched.cel.values import Duration, Uint, Value, compare, has_order, is_equal

_MOST_ATTRIBUTE_VALUES = 48
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


@method(*(f"list({kind}).isSorted() -> bool" for kind in _COMPARABLE), price=costs.traverse_first)
def is_sorted(elements: list[Value]) -> bool:
    """Whether none is larger than the next; what cannot be compared is no obstacle."""
    for element in elements:
        if not has_order(element):
            raise no_such_overload()
    return not any(_above(left, right) for left, right in pairwise(elements))


def _above(left: Value, right: Value) -> bool:
    try:
        return compare(left, right, "_>_") > 0
    except AbsorbableError:
        return False


def _register_sum(kind: str, zero: Value) -> None:
    @method(f"list({kind}).sum() -> {kind}", price=costs.traverse_first)
    def total(elements: list[Value]) -> Value:
        result = zero
        for element in elements:
            result = add(result, element)
        return result


for _kind, _zero in (("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", Duration(0))):
    _register_sum(_kind, _zero)


def _register_extreme(name: str, wins: Callable[[int], bool]) -> None:
    @method(*(f"list({kind}).{name}() -> {kind}" for kind in _COMPARABLE), price=costs.traverse_first)
    def extreme(elements: list[Value]) -> Value:
        if not elements:
            raise AbsorbableError(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            best = element if wins(compare(element, best, name)) else best
        return best


_register_extreme("max", lambda order: order > 0)
_register_extreme("min", lambda order: order < 0)


@method("list(A).indexOf(A) -> int", price=costs.traverse_first)
def index_of(elements: list[Value], wanted: Value) -> int:
    """Where it is first, or -1."""
    return next((at for at, element in enumerate(elements) if is_equal(element, wanted)), -1)


@method("list(A).lastIndexOf(A) -> int", price=costs.traverse_first)
def last_index_of(elements: list[Value], wanted: Value) -> int:
    """Where it is last, or -1."""
    return next((at for at in range(len(elements) - 1, -1, -1) if is_equal(elements[at], wanted)), -1)


@method("dyn.includes(dyn) -> bool", price=costs.traverse_first)
def includes(holder: Value, wanted: Value) -> bool:
    """Whether it is in the list, or is the value itself."""
    elements = holder if type(holder) is list else [holder]
    if any(is_equal(element, wanted) for element in elements[:_MOST_ATTRIBUTE_VALUES]):
        return True
    if len(elements) > _MOST_ATTRIBUTE_VALUES:
        words = f"'includes' function cannot be applied to lists longer than {_MOST_ATTRIBUTE_VALUES} values"
        raise AbsorbableError(words)
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


@method("list(list(T)).flatten() -> list(T)", price=costs.write_list, mismatch=Mismatch.PLAIN)
def flatten(elements: list[Value]) -> list[Value]:
    """Lists in the list replaced by what is in them."""
    return flatten_deep(elements, 1)


@method("list(dyn).flatten(int) -> list(dyn)", price=costs.write_list, mismatch=Mismatch.PLAIN)
def flatten_deep(elements: list[Value], depth: int) -> list[Value]:
    """So, as many levels down as asked for."""
    if depth < 0:
        raise AbsorbableError("level must be non-negative")
    flat: list[Value] = []
    for element in elements:
        flat.extend(flatten_deep(element, depth - 1) if type(element) is list and depth else [element])
    return flat


@method(*(f"list({kind}).sort() -> list({kind})" for kind in _COMPARABLE), price=costs.every_pair_twice)
def sort(elements: list[Value]) -> list[Value]:
    """In ascending order."""
    return sort_by_keys(elements, elements)


@method(
    *(f"list(T).@sortByAssociatedKeys(list({kind})) -> list(T)" for kind in _COMPARABLE),
    price=costs.every_pair_twice,
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


@function("lists.range(int) -> list(int)", price=costs.write_list)
def number_range(count: int) -> list[int]:
    """The numbers from 0."""
    if count < 0:
        raise AbsorbableError(f"lists.range: size must be non-negative, got {count}")
    if count > costs.COST_LIMIT:
        raise CostLimitError(TOO_EXPENSIVE)
    return list(range(count))


@method("list(T).reverse() -> list(T)", price=costs.write_list)
def reverse(elements: list[Value]) -> list[Value]:
    """Last first."""
    return elements[::-1]


@method("list(T).distinct() -> list(T)", price=costs.every_pair_twice)
def distinct(elements: list[Value]) -> list[Value]:
    """Each value once, where it came first."""
    seen: list[Value] = []
    for element in elements:
        if not any(is_equal(element, other) for other in seen):
            seen.append(element)
    return seen


@function("sets.contains(list(T), list(T)) -> bool", price=costs.every_pair)
def set_contains(elements: list[Value], wanted: list[Value]) -> bool:
    """Whether all that is wanted is among the elements."""
    return all(any(is_equal(each, element) for element in elements) for each in wanted)


@function("sets.equivalent(list(T), list(T)) -> bool", price=costs.every_pair_twice)
def set_equivalent(left: list[Value], right: list[Value]) -> bool:
    """Whether both have the same elements, however often."""
    return set_contains(left, right) and set_contains(right, left)


@function("sets.intersects(list(T), list(T)) -> bool", price=costs.every_pair)
def set_intersects(left: list[Value], right: list[Value]) -> bool:
    """Whether they have an element in common."""
    return any(is_equal(a, b) for a in left for b in right)

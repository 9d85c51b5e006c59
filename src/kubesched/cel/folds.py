"""Comprehensions at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from kubesched.cel.closures import Closure, Frame
from kubesched.cel.errors import AbsorbableError, no_such_overload
from kubesched.cel.syntax import FoldKind
from kubesched.cel.values import MAPS, Value, find, show, type_name

Pay = Callable[[Frame, int], None]

_STEP_COSTS = {FoldKind.ALL: 3, FoldKind.EXISTS: 4, FoldKind.EXISTS_ONE: 2, FoldKind.MAP: 12, FoldKind.FILTER: 13}
"""What a step costs besides what it evaluates: keeping the result and putting one more element to it."""
_MAP_STEP_COST = 33


def fold(
    kind: FoldKind,
    over: Closure,
    slots: list[int],
    predicate: Closure | None,
    transform: Closure | None,
    pay: Pay | None,
) -> Closure:
    """The closure of a comprehension; the variables are kept in the slots."""
    steps = partial(_steps, over, slots, pay, _STEP_COSTS.get(kind, _MAP_STEP_COST))
    match kind:
        case FoldKind.ALL | FoldKind.EXISTS:
            assert predicate is not None
            return _quantify(steps, predicate, deciding=kind is FoldKind.EXISTS)
        case FoldKind.EXISTS_ONE:
            return lambda frame: sum(_holds(predicate, frame) for _ in steps(frame)) == 1
        case FoldKind.FILTER:
            slot = slots[0]
            return lambda frame: [frame[slot] for _ in steps(frame) if _holds(predicate, frame)]
        case FoldKind.MAP:
            assert transform is not None
            return lambda frame: [transform(frame) for _ in steps(frame) if _holds(predicate, frame)]
        case FoldKind.TRANSFORM_MAP:
            assert transform is not None
            slot = slots[0]
            return lambda frame: _insert(
                {frame[slot]: transform(frame)} for _ in steps(frame) if _holds(predicate, frame)
            )
        case FoldKind.TRANSFORM_MAP_ENTRY:
            assert transform is not None
            return lambda frame: _insert(transform(frame) for _ in steps(frame) if _holds(predicate, frame))


def _steps(over: Closure, slots: list[int], pay: Pay | None, cost: int, frame: Frame) -> Iterable[None]:
    """Run the variables over the range: a step for each element or key."""
    values = over(frame)
    for pair in _pairs(values) if len(slots) == 2 else zip(_elements(values)):
        for slot, value in zip(slots, pair):
            frame[slot] = value
        if pay is not None:
            pay(frame, cost)
        yield


def _elements(values: Value) -> Iterable[Value]:
    if type(values) is list or type(values) in MAPS:
        return list(values)
    raise AbsorbableError(f"got '{_class_name(values)}', expected iterable type")


def _pairs(values: Value) -> Iterable[tuple[Value, Value]]:
    if type(values) is list:
        return enumerate(values)
    if type(values) in MAPS:
        return list(values.items())
    raise AbsorbableError(f"got '{_class_name(values)}', expected iterable type")


_CLASS_NAMES = {
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.Quantity": "cel.Quantity",
    "null_type": "types.Null",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
}


def _class_name(value: Value) -> str:
    """The names upstream's implementation gives its classes show through here."""
    name = type_name(value)
    return _CLASS_NAMES.get(name) or f"types.{name.rpartition('.')[2].capitalize()}"


def _holds(predicate: Closure | None, frame: Frame) -> bool:
    if predicate is None:
        return True
    value = predicate(frame)
    if type(value) is not bool:
        raise no_such_overload()
    return bool(value)


def _quantify(steps: Callable[[Frame], Iterable[None]], predicate: Closure, *, deciding: bool) -> Closure:
    """all() and exists(): like `&&` and `||` over the elements, errors absorbed likewise."""

    def run(frame: Frame) -> bool:
        first: AbsorbableError | None = None
        for _ in steps(frame):
            try:
                if _holds(predicate, frame) is deciding:
                    return deciding
            except AbsorbableError as error:
                first = first or error
        if first is not None:
            raise first
        return not deciding

    return run


def _insert(maps: Iterable[Value]) -> dict[Value, Value]:
    merged: dict[Value, Value] = {}
    for entries in maps:
        for key, value in entries.items():
            if find(merged, key)[0]:
                raise AbsorbableError(f"insert failed: key {show(key)} already exists")
            merged[key] = value
    return merged

"""The closures that expressions are compiled to: they read fields, call functions and absorb errors at run time."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.cel.errors import AbsorbableError, no_such_key, no_such_overload
from kubesched.cel.functions import Function, Overload
from kubesched.cel.operators import index
from kubesched.cel.values import Optional, Uint, Value, compare, equal, type_name

Frame = list[Value]
"""The device, the meter, then a slot for every local variable."""
Closure = Callable[[Frame], Value]


def guarded(function: Function, overload: Overload) -> Callable[..., Value]:
    """An overload that looks at the types of its arguments first."""

    def run(*values: Value) -> Value:
        if not overload.accepts_values(values):
            raise function.no_overload(values)
        return overload.run(*values)

    return run


def dispatching(function: Function) -> Callable[..., Value]:
    """A function that chooses the overload by its arguments."""

    def run(*values: Value) -> Value:
        return function.choose(values).run(*values)

    return run


def applied_to_constant(run: Callable[..., Value], left: Closure, right: Value) -> Closure:
    """A call of two arguments, the second of which is always the same."""
    return lambda frame: run(left(frame), right)


def applied(run: Callable[..., Value], args: list[Closure]) -> Closure:
    """A call."""
    match args:
        case [only]:
            return lambda frame: run(only(frame))
        case [left, right]:
            return lambda frame: run(left(frame), right(frame))
        case _:
            return lambda frame: run(*[arg(frame) for arg in args])


def comparison(name: str, left: Closure, right: Value) -> Closure | None:
    """Comparing with a constant string or number, which is what selectors do most, without asking for types twice."""
    kind = type(right)
    if name == "_==_" and kind in (str, int):

        def equals(frame: Frame) -> bool:
            value = left(frame)
            return bool(value == right) if type(value) is kind else equal(value, right)

        return equals
    if name == "_>=_" and kind is int:

        def at_least(frame: Frame) -> bool:
            value = left(frame)
            return bool(value >= right) if type(value) is int else compare(value, right, name) >= 0

        return at_least
    return None


def local(slot: int) -> Closure:
    """A local variable; an error in its value is raised where the variable is used."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if type(value) is AbsorbableError:
            raise value
        return value

    return read


def attribute(domain: str, name: str) -> Closure:
    """`device.attributes[domain].name`."""

    def read(frame: Frame) -> Value:
        try:
            return frame[0].attributes[domain][name]
        except KeyError:
            raise no_such_key(name) from None

    return read


def capacity(domain: str, name: str) -> Closure:
    """`device.capacity[domain].name`."""

    def read(frame: Frame) -> Value:
        try:
            return frame[0].capacity[domain][name]
        except KeyError:
            raise no_such_key(name) from None

    return read


DEVICE_FIELDS: dict[str, Closure] = {
    "driver": lambda frame: frame[0].driver,
    "attributes": lambda frame: frame[0].attributes,
    "capacity": lambda frame: frame[0].capacity,
    "allowMultipleAllocations": lambda frame: frame[0].allow_multiple_allocations,
}


def field(operand: Closure, name: str) -> Closure:
    """`operand.name`."""

    def read(frame: Frame) -> Value:
        holder = operand(frame)
        if type(holder) is dict:
            try:
                return holder[name]
            except KeyError:
                raise no_such_key(name) from None
        return index(holder, name)

    return read


def logic(terms: list[Closure], deciding: bool) -> Closure:
    """`||` (decided by true) and `&&` (by false): an error counts only if no other term decides."""
    if len(terms) == 2:
        return _logic_of_two(terms[0], terms[1], deciding)

    def run(frame: Frame) -> Value:
        first: AbsorbableError | None = None
        for term in terms:
            try:
                value = term(frame)
            except AbsorbableError as error:
                first = first or error
                continue
            if value is deciding:
                return deciding
            if type(value) is not bool:
                first = first or no_such_overload()
        if first is not None:
            raise first
        return not deciding

    return run


def _logic_of_two(left: Closure, right: Closure, deciding: bool) -> Closure:
    def run(frame: Frame) -> Value:
        try:
            value = left(frame)
            if value is deciding:
                return deciding
            if type(value) is not bool:
                raise no_such_overload()
        except AbsorbableError as error:
            if _decides(right, frame, deciding):
                return deciding
            raise error from None
        value = right(frame)
        if type(value) is not bool:
            raise no_such_overload()
        return value

    return run


def _decides(term: Closure, frame: Frame, deciding: bool) -> bool:
    try:
        return bool(term(frame) is deciding)
    except AbsorbableError:
        return False


def conditional(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    """`?:`."""

    def run(frame: Frame) -> Value:
        value = condition(frame)
        if type(value) is not bool:
            raise no_such_overload()
        return then(frame) if value else otherwise(frame)

    return run


def optional_or(left: Closure, right: Closure, *, unwrap: bool) -> Closure:
    """`or` and `orValue`: the other side is evaluated only if needed."""

    def run(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not Optional:
            raise no_such_overload()
        if value.present:
            return value.value if unwrap else value
        return right(frame)

    return run


def optional_list(runs: list[Closure], optional: frozenset[int]) -> Closure:
    """A list some elements of which may be left out."""

    def run(frame: Frame) -> list[Value]:
        elements = []
        for at, element in enumerate(runs):
            value = element(frame)
            if at in optional:
                if type(value) is not Optional:
                    raise AbsorbableError(f"cannot initialize optional list element from non-optional value {value}")
                if not value.present:
                    continue
                value = value.value
            elements.append(value)
        return elements

    return run


def is_key(value: Value) -> bool:
    """Whether maps can have it as a key."""
    return type(value) in (bool, int, Uint, float, str)


def map_of(runs: list[tuple[Closure, Closure, bool]]) -> Closure:
    """A map some entries of which may be left out."""

    def run(frame: Frame) -> dict[Value, Value]:
        entries: dict[Value, Value] = {}
        for key_run, value_run, optional in runs:
            key, value = key_run(frame), value_run(frame)
            if not is_key(key):
                raise AbsorbableError(f"unsupported key type: {type_name(key)}")
            if optional:
                if type(value) is not Optional:
                    raise AbsorbableError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                if not value.present:
                    entries.pop(key, None)
                    continue
                value = value.value
            entries[key] = value
        return entries

    return run


def bound(slot: int, value: Closure, body: Closure) -> Closure:
    """The value is worked out once; an error in it counts only where the variable is used."""

    def run(frame: Frame) -> Value:
        try:
            frame[slot] = value(frame)
        except AbsorbableError as error:
            frame[slot] = error
        return body(frame)

    return run

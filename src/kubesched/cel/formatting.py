"""`"...%s...".format([...])`: the clauses, what each can print, and how."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubesched.cel.errors import AbsorbableError
from kubesched.cel.values import MAPS, TypeValue, Uint, Value, show_double, type_name

_CLAUSE = re.compile(r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]*))?(?P<verb>.)?)", re.DOTALL)
_DEFAULT_PRECISION = "6"
_MOST_DIGITS = 6
"""The largest precision that is printed; Go has no limit."""
_PRINTABLE = {
    "s": (
        frozenset({"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "null", "null_type"})
        | {"google.protobuf.Duration", "google.protobuf.Timestamp"},
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
    ),
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"int", "uint", "bool"}), "only integers and bools can be formatted as binary"),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
    "x": (
        frozenset({"int", "uint", "bytes", "string"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
}


class Clause(NamedTuple):
    """One `%...` of a template."""

    verb: str
    precision: int
    start: int
    end: int


def clauses_of(template: str) -> list[Clause]:
    """The clauses of a template that print something."""
    clauses = []
    for match in _CLAUSE.finditer(template):
        if match["percent"]:
            continue
        verb = match["verb"]
        if verb is None:
            raise AbsorbableError("unexpected end of string")
        if verb.lower() not in _PRINTABLE or verb in "SDFEBO":
            raise AbsorbableError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        precision = match["precision"] or _DEFAULT_PRECISION
        if len(precision) > _MOST_DIGITS:
            problem = f'strconv.Atoi: parsing "{precision}": value out of range'
            raise AbsorbableError(f"could not parse formatting clause: error while parsing precision: {problem}")
        clauses.append(Clause(verb, int(precision), *match.span()))
    return clauses


def refusal(clause: Clause, name: str) -> str | None:
    """Why the clause cannot print values of the type named, if it cannot."""
    printable, reason = _PRINTABLE[clause.verb.lower()]
    return None if name in printable else f"error during formatting: {reason}, was given {name}"


def format_values(template: str, values: list[Value]) -> str:
    """The template with its clauses replaced."""
    shown, at = [], 0
    clauses = clauses_of(template)
    if len(clauses) > len(values):
        raise AbsorbableError(f"index {len(values)} out of range")
    for clause, value in zip(clauses, values):
        if reason := refusal(clause, type_name(value)):
            raise AbsorbableError(reason)
        shown += [template[at : clause.start].replace("%%", "%"), _print(clause, value)]
        at = clause.end
    return "".join([*shown, template[at:].replace("%%", "%")])


def _print(clause: Clause, value: Value) -> str:
    match clause.verb:
        case "s":
            return to_text(value)
        case "d":
            return str(int(value))
        case "f":
            return f"{value:.{clause.precision}f}"
        case "e":
            return f"{value:.{clause.precision}e}"
        case "b":
            return f"{int(value):b}"
        case "o":
            return f"{value:o}"
        case _:
            return _hex(value) if clause.verb == "x" else _hex(value).upper()


def _hex(value: Value) -> str:
    if type(value) is str:
        return value.encode().hex()
    return value.hex() if type(value) is bytes else f"{value:x}"


def to_text(value: Value, *, quoted: bool = False) -> str:
    """A value as `%s` prints it; text inside lists and maps is quoted."""
    kind = type(value)
    if kind is str:
        return f'"{value}"' if quoted else value
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return show_double(value)
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is bytes:
        return str(value.decode(errors="replace"))
    if kind is list:
        return f"[{', '.join(to_text(element, quoted=True) for element in value)}]"
    if kind in MAPS:
        entries = sorted((to_text(key, quoted=True), to_text(element, quoted=True)) for key, element in value.items())
        return "{" + ", ".join(f"{key}: {element}" for key, element in entries) + "}"
    if kind is TypeValue:
        return str(value.name)
    return "null" if value is None else str(value)

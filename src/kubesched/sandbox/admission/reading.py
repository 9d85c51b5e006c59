"""Reading JSON that may be of any shape: a field of the wrong type is the client's mistake, and told as such."""

from __future__ import annotations

from typing import Any

from kubesched.api.kinds import Object
from kubesched.api.quantity import Quantity, parse_quantity
from kubesched.sandbox.errors import ApiError, bad_request

Json = Any
_INT64 = 2**63
_DEEPEST = 200
"""Levels of nesting; no kind comes near, and neither copying nor comparing runs out of stack."""
_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WORDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def mistyped(where: str, value: Json, wanted: str) -> ApiError:
    """The answer to a value that cannot be read as what the field holds."""
    found = _WORDS.get(type(value), "value")
    return bad_request(f"json: cannot unmarshal {found} into field {where} of type {wanted}")


def mapping(holder: Object, key: str, where: str) -> Object:
    value = holder.get(key)
    if value is None:
        return {}
    if type(value) is dict:
        return value
    raise mistyped(child(where, key), value, "object")


def optional_mapping(holder: Object, key: str, where: str) -> Object | None:
    """The object there, or None: for fields where being there at all means something."""
    return None if holder.get(key) is None else mapping(holder, key, where)


def string_map(holder: Object, key: str, where: str) -> dict[str, str]:
    value = mapping(holder, key, where)
    for name, text_ in value.items():
        if type(text_) is not str:
            raise mistyped(f"{child(where, key)}[{name}]", text_, "string")
    return value


def sequence(holder: Object, key: str, where: str) -> list[Json]:
    value = holder.get(key)
    if value is None:
        return []
    if type(value) is list:
        return value
    raise mistyped(child(where, key), value, "array")


def records(holder: Object, key: str, where: str) -> list[Object]:
    """A list of objects."""
    value = sequence(holder, key, where)
    for i, item in enumerate(value):
        if type(item) is not dict:
            raise mistyped(f"{child(where, key)}[{i}]", item, "object")
    return value


def texts(holder: Object, key: str, where: str) -> list[str]:
    """A list of strings."""
    value = sequence(holder, key, where)
    for i, item in enumerate(value):
        if type(item) is not str:
            raise mistyped(f"{child(where, key)}[{i}]", item, "string")
    return value


def text(holder: Object, key: str, where: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if type(value) is str:
        return value
    raise mistyped(child(where, key), value, "string")


def integer(holder: Object, key: str, where: str) -> int | None:
    value = holder.get(key)
    if value is None:
        return None
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    raise mistyped(child(where, key), value, "int64")


def flag(holder: Object, key: str, where: str) -> bool | None:
    value = holder.get(key)
    if value is None or type(value) is bool:
        return value
    raise mistyped(child(where, key), value, "bool")


def int_or_text(holder: Object, key: str, where: str) -> int | str | None:
    """A number, or a string such as a percentage or the name of a port."""
    value = holder.get(key)
    if value is None or type(value) is str:
        return value
    return integer(holder, key, where)


def quantity(value: Json, where: str) -> Quantity:
    if type(value) not in (str, int, float):
        raise mistyped(where, value, "Quantity")
    try:
        return parse_quantity(value)
    except ValueError:
        raise bad_request(f"{where}: {_QUANTITY}") from None


def quantities(holder: Object, key: str, where: str) -> dict[str, Quantity]:
    """A list of amounts by resource name."""
    amounts = mapping(holder, key, where)
    return {name: quantity(value, f"{where}.{key}[{name}]") for name, value in amounts.items()}


def fill(holder: Object, key: str, value: Json) -> None:
    """Set what the client left out; an empty word says no more than none."""
    given = holder.get(key)
    if given is None or given == "":
        holder[key] = value


def fresh_copy(obj: Object, *, keep_nulls: bool = False) -> Object:
    """A deep copy that may be changed; null means absent, as for every typed kind."""
    return _copied(obj, keep_nulls, _DEEPEST)


def _copied(value: Object, keep_nulls: bool, levels: int) -> Object:
    copy: Object = {}
    for key, item in value.items():
        kind = type(item)
        if kind is dict or kind is list:
            copy[key] = _deeper(item, keep_nulls, levels - 1)
        elif item is not None or keep_nulls:
            copy[key] = item
    return copy


def _deeper(value: Json, keep_nulls: bool, levels: int) -> Json:
    if not levels:
        raise bad_request("json: exceeded max depth")
    if type(value) is dict:
        return _copied(value, keep_nulls, levels)
    return [
        _deeper(item, keep_nulls, levels - 1) if type(item) is dict or type(item) is list else item for item in value
    ]


def child(where: str, key: str) -> str:
    """The path of a field of the object at `where`."""
    return f"{where}.{key}" if where else key

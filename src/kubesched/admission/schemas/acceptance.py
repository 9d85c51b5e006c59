"""The quick yes: one C-level conversion tells whether an object fits the field table.

Each type becomes a msgspec struct that forbids unknown fields. A yes is certain; a no only means that
checking.py has to look closer. Pods are created by the thousand, so this must cost a few microseconds.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec

from kubesched.admission.schemas.table import Definition, Type, definition, definition_of
from kubesched.api.kinds import Resource


def is_acceptable(root: Definition, obj: Any) -> bool:
    """Whether the object surely has no unknown field and no value of a wrong type."""
    struct = _struct_of(root.name)
    if struct is None:
        return False
    try:
        msgspec.convert(obj, struct)
    except msgspec.ValidationError:
        return False
    return True


def is_acceptable_json(resource: Resource, raw: bytes | msgspec.Raw) -> bool:
    """The same for the text of an object of a kind that is built in."""
    root = definition_of(resource)
    struct = _struct_of(root.name) if root is not None else None
    if struct is None:
        return False
    try:
        _decoder(struct).decode(raw)
    except msgspec.ValidationError:
        return False
    return True


@cache
def _decoder(struct: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TIME = Annotated[datetime, msgspec.Meta(tz=True)]
_QUANTITY = Annotated[str, msgspec.Meta(pattern=r"^[+-]?[0-9]+(?:\.[0-9]+)?(?:[numkMGTPE]|[KMGTPE]i)?$")]
_SCALARS: dict[str, Any] = {
    "string": str,
    "bytes": bytes,
    "boolean": bool,
    "int32": _INT32,
    "int64": _INT64,
    "double": float,
    "quantity": _QUANTITY | int | float,
    "intOrString": _INT32 | str,
    "time": _TIME,
    "microTime": _TIME,
}


@cache
def _struct_of(name: str) -> type[msgspec.Struct] | None:
    """The struct of a root type; None if the type contains itself, as JSON schemas do."""
    return None if _is_recursive(name, ()) else _compiled(name)


def _is_recursive(name: str, above: tuple[str, ...]) -> bool:
    if name in above:
        return True
    inner = {struct for field in definition(name).fields.values() for struct in _structs_in(field.type)}
    return any(_is_recursive(struct, (*above, name)) for struct in inner)


def _structs_in(type_: Type) -> list[str]:
    if type_.shape == "struct":
        return [type_.name]
    return _structs_in(type_.element) if type_.element is not None else []


@cache
def _compiled(name: str) -> type[msgspec.Struct]:
    known = definition(name)
    # Field names like "continue" are no Python names, so every struct numbers its fields and renames them.
    numbered = {f"f{index}": field for index, field in enumerate(known.fields)}
    fields = [(number, _annotation(known.fields[field].type) | None, None) for number, field in numbered.items()]
    return msgspec.defstruct(known.short_name, fields, forbid_unknown_fields=True, rename=numbered, gc=False)


def _annotation(type_: Type) -> Any:
    match type_.shape:
        case "struct":
            return _compiled(type_.name)
        case "list":
            return list[_annotation(type_.item)]  # type: ignore[misc]
        case "map":
            return dict[str, _annotation(type_.item) | None]  # type: ignore[misc]
        case "scalar":
            return _SCALARS[type_.name]
    return Any

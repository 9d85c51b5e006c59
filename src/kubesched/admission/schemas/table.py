"""The field table: which fields every served kind has, of which types, and how they merge.

fields.json is written by tools/field_table.py from the OpenAPI documents of a Kubernetes release. A field is spelled
`TYPE[!] [fact=value ...]`, where `!` marks a required field. TYPE is a scalar (string, bytes, boolean, int32, int64,
double, quantity, intOrString, time, microTime), `any`, the name of another type, `[TYPE]` or `{TYPE}` (string keys).
Facts: listType, keys, mapType (server-side apply), strategy, mergeKey (strategic merge), default (JSON).

Each type also becomes a msgspec struct that forbids unknown fields: one conversion in C tells whether an object fits.
A yes is certain; after a no `field_mistakes` looks closer. Pods are created by the thousand, so this must cost a few
microseconds.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache, cached_property
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec

from kubesched.api.kinds import Resource

Shape = Literal["scalar", "list", "map", "struct", "any"]


class Type(msgspec.Struct, frozen=True):
    """The type of a value, and how patches merge two values of it."""

    shape: Shape
    name: str = ""
    """Of a scalar or of a struct."""
    element: Type | None = None
    """Of a list or a map."""
    atomic: bool = False
    """Server-side apply replaces such a list, map or struct as a whole."""
    keys: tuple[str, ...] = ()
    """Server-side apply tells the items of such a list apart by these fields."""
    is_set: bool = False
    merge_key: str = ""
    merges: bool = False
    """A strategic merge patch merges such a list or struct, instead of replacing it."""
    retains_keys: bool = False
    """A strategic merge patch may say with $retainKeys which fields stay."""
    replaces: bool = False
    """A strategic merge patch replaces such a map or struct."""

    @property
    def item(self) -> Type:
        """The type of the items of a list or a map; `ANY` if it is not known."""
        return self.element or ANY


ANY = Type("any")
METADATA = Type("struct", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


class Field(msgspec.Struct, frozen=True):
    """One field of a struct."""

    type: Type
    required: bool = False
    default: Any = None


class Definition:
    """A named struct with its fields, which are parsed when they are first read."""

    def __init__(self, name: str, spelled: dict[str, str], atomic: bool) -> None:
        self.name, self.atomic = name, atomic
        self._spelled = spelled

    @property
    def short_name(self) -> str:
        """As Go calls it: PodSpec."""
        return self.name.rpartition(".")[2]

    @property
    def package(self) -> str:
        """As Go calls it: v1."""
        return self.name.split(".")[-2]

    @cached_property
    def fields(self) -> dict[str, Field]:
        return {name: parse_field(text) for name, text in self._spelled.items()}


class _Entry(msgspec.Struct, frozen=True):
    fields: dict[str, str]
    atomic: bool = False


class _File(msgspec.Struct, frozen=True):
    release: str
    kinds: dict[str, str]
    types: dict[str, _Entry]


@cache
def _file() -> _File:
    data = resources.files(__package__).joinpath("fields.json").read_bytes()
    return msgspec.json.decode(data, type=_File)


@cache
def definition(name: str) -> Definition:
    """The struct with that full name, io.k8s.api.core.v1.PodSpec for example."""
    entry = _file().types[name]
    return Definition(name, entry.fields, entry.atomic)


@cache
def definition_of_kind(group: str, version: str, kind: str) -> Definition | None:
    """The struct of a kind; None for a kind that is not built in."""
    name = _file().kinds.get(f"{group}/{version}/{kind}")
    return definition(name) if name is not None else None


def definition_of(resource: Resource) -> Definition | None:
    """The struct of a resource's objects; None for a custom resource."""
    return definition_of_kind(resource.group, resource.version, resource.kind)


@cache
def object_type(resource: Resource) -> Type:
    """The type of a resource's objects, as a Type; a custom resource is anything with the usual metadata."""
    root = definition_of(resource)
    return Type("struct", CUSTOM if root is None else root.name)


CUSTOM = "custom"
"""The name of the struct that stands for every custom resource: metadata is known, everything else is free."""


def field_type(struct: Type, field: str) -> Type:
    """The type of a field of a struct; `ANY` for a field that the struct does not have."""
    if struct.name == CUSTOM:
        return METADATA if field == "metadata" else _CUSTOM_FIELDS.get(field, ANY)
    field_of_struct = definition(struct.name).fields.get(field)
    return ANY if field_of_struct is None else field_of_struct.type


def release() -> str:
    """The Kubernetes release the table was made from."""
    return _file().release


def parse_field(text: str) -> Field:
    """A field as fields.json spells it."""
    text, has_default, default = text.partition(" default=")  # which may hold spaces, and comes last
    spelled, *words = text.split()
    facts = dict(word.split("=", 1) for word in words)
    type_ = _type(spelled.removesuffix("!"), facts)
    return Field(type_, spelled.endswith("!"), msgspec.json.decode(default) if has_default else None)


def _type(spelled: str, facts: dict[str, str]) -> Type:
    strategies = facts.get("strategy", "").split(",")
    merges, retains = "merge" in strategies, "retainKeys" in strategies
    if spelled.startswith("["):
        return Type(
            "list",
            element=_type(spelled[1:-1], {}),
            atomic=facts.get("listType", "atomic") == "atomic",
            keys=tuple(facts["keys"].split(",")) if "keys" in facts else (),
            is_set=facts.get("listType") == "set",
            merge_key=facts.get("mergeKey", ""),
            merges=merges,
            retains_keys=retains,
        )
    atomic, replaces = facts.get("mapType") == "atomic", "replace" in strategies
    if spelled.startswith("{"):
        return Type("map", element=_type(spelled[1:-1], {}), atomic=atomic, retains_keys=retains, replaces=replaces)
    if spelled == "any":
        return ANY
    if "." in spelled:
        atomic = atomic or _file().types[spelled].atomic
        return Type("struct", spelled, atomic=atomic, merges=merges, retains_keys=retains, replaces=replaces)
    return Type("scalar", spelled)


_CUSTOM_FIELDS = {"apiVersion": Type("scalar", "string"), "kind": Type("scalar", "string")}


# -- acceptance -------------------------------------------------------------------------------------------------------


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
    return None if _is_recursive(name, ()) else _compile(name)


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
def _compile(name: str) -> type[msgspec.Struct]:
    struct = definition(name)
    # Field names like "continue" are no Python names, so every struct numbers its fields and renames them.
    numbered = {f"f{index}": field for index, field in enumerate(struct.fields)}
    fields = [(number, _annotation(struct.fields[field].type) | None, None) for number, field in numbered.items()]
    return msgspec.defstruct(struct.short_name, fields, forbid_unknown_fields=True, rename=numbered, gc=False)


def _annotation(type_: Type) -> Any:
    match type_.shape:
        case "struct":
            return _compile(type_.name)
        case "list":
            return list[_annotation(type_.item)]  # type: ignore[misc]
        case "map":
            return dict[str, _annotation(type_.item) | None]  # type: ignore[misc]
        case "scalar":
            return _SCALARS[type_.name]
    return Any

"""Tables as `kubectl get` shows them, made by the server so that every client shows the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, Literal

import msgspec

from kubesched.admission.reading import value_at
from kubesched.api.kinds import AUTOSCALERS, BUILT_IN, CORE_EVENTS, EVENTS, OLDER_AUTOSCALERS, Object, Resource
from kubesched_sandbox.tables import cells, pods
from kubesched_sandbox.tables.column import AGE, NAME, SHAPES, Cell, Column, Shape, custom_columns, human_duration

__all__ = ["human_duration", "table"]

_CELLS: Mapping[str, Cell] = {**vars(cells), **vars(pods)}
_COMMON = {"name": NAME, "age": AGE}


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column as columns.toml has it."""

    cell: str
    otherwise: str = ""
    wide: bool = False
    type: str = ""
    description: str = ""


def _column(name: str, written: str | _Written) -> Column:
    if isinstance(written, str):
        if written in _COMMON:
            return _COMMON[written]
        written = _Written(written)
    shape, dot, paths = written.cell.partition(".")
    show, kind = SHAPES[shape.strip()] if dot else (None, "string")
    return Column(
        name,
        _CELLS[written.cell] if show is None else _field(show, paths, written.otherwise),
        type=written.type or kind,
        format="name" if name == "Name" else "",
        priority=int(written.wide),
        description=written.description,
    )


def _field(show: Shape, paths: str, otherwise: str) -> Cell:
    """The first of the fields that holds anything, as it is shown."""
    alternatives = [path.split(".") for path in paths.split(" | .")]

    def cell(obj: Object, now: datetime) -> Any:
        values = (value_at(obj, *path) for path in alternatives)
        shown = show(next((value for value in values if value not in (None, "")), None), now)
        return otherwise if shown == "" else shown

    return cell


def _read() -> Iterator[tuple[Resource, tuple[Column, ...]]]:
    text = files(__package__).joinpath("columns.toml").read_bytes()
    for resource, columns in msgspec.toml.decode(text, type=dict[str, dict[str, str | _Written]]).items():
        api_version, kind = resource.split()
        yield BUILT_IN[api_version, kind], tuple(_column(name, each) for name, each in columns.items())


_COLUMNS = dict(_read())
_COLUMNS[EVENTS] = _COLUMNS[CORE_EVENTS]
_COLUMNS[OLDER_AUTOSCALERS] = _COLUMNS[AUTOSCALERS]

Include = Literal["None", "Metadata", "Object"]


def table(
    resource: Resource,
    objects: Sequence[Object],
    *,
    now: datetime,
    include: Include = "Metadata",
    list_meta: Object | None = None,
    columns: Sequence[Object] | None = None,
) -> Object:
    """A meta.k8s.io/v1 Table of the objects; `columns` are the additionalPrinterColumns of a custom resource."""
    shown = _COLUMNS.get(resource) or custom_columns(columns)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(list_meta or {}),
        "columnDefinitions": [column.definition() for column in shown],
        "rows": [_row(obj, shown, now, include) for obj in objects],
    }


def _row(obj: Object, columns: Sequence[Column], now: datetime, include: Include) -> Object:
    row: Object = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj.get("metadata") or {},
        }
    return row

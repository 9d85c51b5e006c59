"""The shapes in which objects are shown: whole, as rows of a Table, or as their metadata alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource
from kubesched.sandbox.api import Api
from kubesched.sandbox.api.catalog import version_of
from kubesched.sandbox.http.content import Accepted
from kubesched.sandbox.tables import table

Shape = Callable[[Object], Object]
"""From what is stored to what is shown."""

_INCLUDED = ("None", "Metadata", "Object")


class Shapes:
    """Turns objects of one resource into what one client accepts."""

    def __init__(self, api: Api, resource: Resource, accepted: Accepted, include: str) -> None:
        if include not in _INCLUDED:
            raise bad_request(f'unrecognized includeObject value: "{include}"')
        self._api, self._resource, self._accepted, self._include = api, resource, accepted, include
        view = api.catalog.view(resource)
        self._shown: Shape | None = None if view is None else view.shown

    @property
    def is_plain(self) -> bool:
        """Whether what is stored can be sent as it is."""
        return self._shown is None and self._accepted.form == "object"

    def one(self, obj: Object) -> Object:
        """One stored object as the client sees it."""
        shown = obj if self._shown is None else self._shown(obj)
        match self._accepted.form:
            case "metadata":
                return _metadata(shown)
            case "table":
                version = shown["metadata"].get("resourceVersion", "")
                return self._table([shown], {"resourceVersion": version})
            case _:
                return shown

    def many(self, objects: list[Object], list_meta: Object) -> Object:
        """A list of stored objects as the client sees it."""
        shown = objects if self._shown is None else [self._shown(obj) for obj in objects]
        match self._accepted.form:
            case "table":
                return self._table(shown, list_meta)
            case "metadata":
                items = [_metadata(obj) for obj in shown]
                head: Object = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            case _:
                items = shown
                head = {"kind": f"{self._resource.kind}List", "apiVersion": self._resource.api_version}
        return {**head, "metadata": list_meta, "items": items}

    def bookmark(self, revision: int, annotations: dict[str, str] | None) -> Object:
        """An object that carries a resourceVersion and nothing else."""
        metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        if self._accepted.form == "table":
            marked = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
            made = self._table([], {"resourceVersion": str(revision)})
            made["rows"] = [{"cells": [], "object": marked}]
            return made
        if self._accepted.form == "metadata":
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}

    def _table(self, objects: list[Object], list_meta: Object) -> Object:
        return table(
            self._resource,
            objects,
            now=datetime.fromtimestamp(self._api.stamps.time(), UTC),
            include=self._include,  # type: ignore[arg-type]
            list_meta=list_meta,
            columns=self._columns(),
        )

    def _columns(self) -> list[Object] | None:
        if not self._api.catalog.is_custom(self._resource):
            return None
        definition = self._api.get(CUSTOM_RESOURCE_DEFINITIONS, "", self._resource.qualified)
        columns: Any = version_of(definition, self._resource.version).get("additionalPrinterColumns")
        return columns if isinstance(columns, list) else None


def _metadata(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}

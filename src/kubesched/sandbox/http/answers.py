"""Answers: objects whole, as rows of a Table or as their metadata alone, in the format that the client accepts."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml
from aiohttp import web
from multidict import CIMultiDict

from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource
from kubesched.http.errors import status_response
from kubesched.sandbox.api import Api
from kubesched.sandbox.api.catalog import version_of
from kubesched.sandbox.http.content import JSON, YAML, Accepted
from kubesched.sandbox.tables import table

_WORTH_COMPRESSING = 128 * 1024
_LONGEST_WARNINGS = 4096
_encode = msgspec.json.encode


def json_answer(body: bytes, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    """An answer from bytes that are JSON already."""
    if not warnings:
        return web.Response(
            body=body, status=status, headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"}
        )
    headers = CIMultiDict({"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    for line in _warning_lines(warnings):
        headers.add("Warning", line)
    return web.Response(body=body, status=status, headers=headers)


def formatted(body: bytes | Object, media: str, *, pretty: bool) -> tuple[bytes, str]:
    """A body and its content type."""
    if media == YAML:
        value = msgspec.json.decode(body) if isinstance(body, bytes) else msgspec.to_builtins(body)
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode(), YAML
    encoded = body if isinstance(body, bytes) else _encode(body)
    return (msgspec.json.format(encoded, indent=2) + b"\n" if pretty else encoded), JSON


async def large_answer(body: bytes, content_type: str, accepts_encoding: str) -> web.Response:
    """An answer that may be big enough to be compressed, which is done beside the loop."""
    headers = {"Content-Type": content_type, "Cache-Control": "no-cache, private"}
    if len(body) >= _WORTH_COMPRESSING and "gzip" in accepts_encoding:
        body = await asyncio.to_thread(_gzip, body)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(body=body, headers=headers)


def error_answer(error: ApiError) -> web.Response:
    """A Status, with a header where the client is asked to come back."""
    headers = {}
    retry_after = error.details.get("retryAfterSeconds")
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if error.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="kubesched-sandbox"'
    return status_response(error, headers=headers)


def success(details: Object | None = None) -> Object:
    """The Status of something done."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return status if details is None else {**status, "details": details}


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def _warning_lines(warnings: Sequence[str]) -> list[str]:
    lines, length = [], 0
    for warning in warnings:
        text = "".join(character if character.isprintable() and character.isascii() else "?" for character in warning)
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        length += len(quoted)
        if length > _LONGEST_WARNINGS:
            break
        lines.append(f'299 - "{quoted}"')
    return lines


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

"""Answers: objects and lists, whole, as a Table or as their metadata alone, in the format that the client accepts."""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import yaml
from aiohttp import web
from multidict import CIMultiDict

from kubesched.api.api_error import ApiError, bad_request, gone
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource
from kubesched.http.errors import status_response
from kubesched_sandbox.api import Api, ListSelector
from kubesched_sandbox.api.catalog import table_of, version_of
from kubesched_sandbox.http.content import JSON, PROTOBUF, YAML, Accepted, not_acceptable, takes_only_protobuf
from kubesched_sandbox.http.protobuf_writing import encode_event, encode_object
from kubesched_sandbox.http.query import Query, bad_list_option
from kubesched_sandbox.store import ExpiredError, StoredObject
from kubesched_sandbox.store.memory import key_of
from kubesched_sandbox.tables import table

_WORTH_COMPRESSING = 128 * 1024
_LONGEST_WARNINGS = 4096
_encode = msgspec.json.encode


def json_answer(body: bytes, status: int = 200, warnings: Sequence[str] = (), content_type: str = JSON) -> web.Response:
    """An answer from bytes that are JSON already, or of another type."""
    headers = CIMultiDict({"Content-Type": content_type, "Cache-Control": "no-cache, private"})
    for line in _warning_lines(warnings):
        headers.add("Warning", line)
    return web.Response(body=body, status=status, headers=headers)


def formatted(body: bytes | Object, media: str, *, pretty: bool) -> tuple[bytes, str]:
    """A body and its content type."""
    if media == YAML:
        value = msgspec.json.decode(body) if isinstance(body, bytes) else msgspec.to_builtins(body)
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode(), YAML
    if media == PROTOBUF:
        encoded = encode_object(msgspec.json.decode(body) if isinstance(body, bytes) else body)
        if encoded is None:
            raise not_acceptable()
        return encoded, PROTOBUF
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


def error_answer(error: ApiError, accept: str = "") -> web.Response:
    """A Status, with a header where the client is asked to come back, in the format that the client accepts."""
    headers = {}
    retry_after = error.details.get("retryAfterSeconds")
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if error.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="kubesched-sandbox"'
    answer = status_response(error, headers=headers)
    if error.code != 406 and takes_only_protobuf(accept):
        answer.body = encode_object(error.status())
        answer.content_type = PROTOBUF
    return answer


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


def encoded_line(kind: str, encoded: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoded)


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
        return self._shown is None and self._accepted.form == "object" and self._accepted.media == JSON

    def event(self, kind: str, obj: Object) -> bytes:
        """What a watch sends of an object that is shown already."""
        return encode_event(kind, obj) if self._accepted.media == PROTOBUF else encoded_line(kind, _encode(obj))

    @property
    def event_type(self) -> str:
        """The content type of a watch."""
        return f"{PROTOBUF};stream=watch" if self._accepted.media == PROTOBUF else JSON

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


# -- lists: of now or of a revision, whole or page by page from one snapshot ------------------------------------------


_SNAPSHOTS_KEPT = 64
_SNAPSHOT_SECONDS = 300.0
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct, frozen=True):
    """Where a list goes on."""

    snapshot: int
    revision: int
    start: int


class _Snapshot(NamedTuple):
    path: str
    revision: int
    records: list[StoredObject]
    made: float


class Lists:
    """Answers lists, and remembers those that were begun and not finished."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._snapshots: OrderedDict[int, _Snapshot] = OrderedDict()
        self._made = 0

    def answer(
        self, resource: Resource, namespace: str | None, wanted: ListSelector, query: Query, shapes: Shapes
    ) -> bytes | Object:
        """The list a query asks for: as bytes where what is stored can be sent as it is, else as an object."""
        limit = query.number("limit")
        token = query.text("continue")
        if limit is not None and limit < 0:
            raise bad_list_option(
                "limit", f"Invalid value: {limit}: must be greater than or equal to 0", "FieldValueInvalid"
            )
        if token:
            page = self._read_token(token, query)
            snapshot = self._snapshot(resource, page)
            records, revision, start = snapshot.records, page.revision, page.start
        else:
            page = None
            records, revision = self._records(resource, namespace, wanted, query)
            start = 0
        list_meta: Object = {"resourceVersion": str(revision)}
        if limit and len(records) - start > limit:
            list_meta["continue"] = self._token(resource, page, records, revision, start + limit)
            if wanted.is_everything:
                list_meta["remainingItemCount"] = len(records) - start - limit
            records = records[start : start + limit]
        elif start:
            records = records[start:]
        if shapes.is_plain:
            return _joined(resource, records, list_meta)
        return shapes.many([record.object for record in records], list_meta)

    def _records(
        self, resource: Resource, namespace: str | None, wanted: ListSelector, query: Query
    ) -> tuple[list[StoredObject], int]:
        asked = query.resource_version()
        match = query.text("resourceVersionMatch")
        now = self._api.store.revision
        _check_match(asked, match)
        if asked is not None and asked > now:
            raise too_large_version(asked, now)
        if match == "Exact" and asked is not None and asked != now:
            return self._as_of(resource, namespace, wanted, asked), asked
        return self._api.records(resource, namespace, wanted), now

    def _as_of(
        self, resource: Resource, namespace: str | None, wanted: ListSelector, revision: int
    ) -> list[StoredObject]:
        try:
            records = self._api.store.table(table_of(resource)).as_of(revision)
        except ExpiredError:
            raise gone("The resourceVersion for the provided list is too old.") from None
        return [
            record
            for record in records
            if (namespace is None or key_of(record.object)[0] == namespace) and wanted.matches(record.object)
        ]

    def _token(
        self, resource: Resource, page: _Token | None, records: list[StoredObject], revision: int, start: int
    ) -> str:
        number = (
            page.snapshot
            if page is not None
            else self._keep(_Snapshot(resource.path, revision, records, self._api.stamps.time()))
        )
        return base64.urlsafe_b64encode(msgspec.json.encode(_Token(number, revision, start))).decode().rstrip("=")

    def _keep(self, snapshot: _Snapshot) -> int:
        self._made += 1
        self._snapshots[self._made] = snapshot
        while len(self._snapshots) > _SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)
        return self._made

    def _snapshot(self, resource: Resource, token: _Token) -> _Snapshot:
        snapshot = self._snapshots.get(token.snapshot)
        if snapshot is not None and snapshot.path != resource.path:
            raise bad_request("continue key is not valid: it belongs to another list")
        if (
            snapshot is None
            or snapshot.revision != token.revision
            or snapshot.made < self._api.stamps.time() - _SNAPSHOT_SECONDS
        ):
            self._snapshots.pop(token.snapshot, None)
            raise gone(_TOO_OLD)
        return snapshot

    def _read_token(self, text: str, query: Query) -> _Token:
        version = query.resource_version()
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            decoded = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
            token = msgspec.json.decode(decoded, type=_Token)
        except (ValueError, msgspec.DecodeError):
            raise bad_request("continue key is not valid: encoded start key is not well-formed") from None
        if token.start < 0:
            raise bad_request("continue key is not valid: incorrect encoded start key")
        return token


def _check_match(asked: int | None, match: str) -> None:
    if not match:
        return
    if asked is None:
        raise bad_list_option(
            "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match not in ("Exact", "NotOlderThan"):
        values = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
        raise bad_list_option("resourceVersionMatch", values, "FieldValueNotSupported")
    if match == "Exact" and asked == 0:
        message = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise bad_list_option("resourceVersionMatch", message)


def too_large_version(asked: int, current: int) -> ApiError:
    """The answer to a client whose resourceVersion lies in the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


def _joined(resource: Resource, records: list[StoredObject], list_meta: Object) -> bytes:
    """A list put together from bytes that are there already."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": list_meta}
    opening = msgspec.json.encode(head)[:-1] + b',"items":['
    return opening + b",".join([record.encoded for record in records]) + b"]}"

"""Lists: of now or of a revision, whole or page by page from one snapshot."""

from __future__ import annotations

import base64
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from kubesched.api.api_error import ApiError, bad_request, gone
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.api import Api, ListSelector
from kubesched.sandbox.api.catalog import table_of
from kubesched.sandbox.http.answers import Shapes
from kubesched.sandbox.http.query import Query, bad_list_option
from kubesched.sandbox.store import ExpiredError, StoredObject
from kubesched.sandbox.store.memory import key_of

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
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
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

"""Bodies of requests: read, decoded, and held against the fields that a kind has."""

from __future__ import annotations

from typing import Any, NamedTuple

from aiohttp import web

from kubesched.admission.schemas import decoding_error, field_mistakes, strict_decoding_error
from kubesched.api.api_error import bad_request, unsupported_media_type
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.api import Api, PatchKind
from kubesched.sandbox.api.deleting import DeleteOptions
from kubesched.sandbox.http.content import (
    content_type,
    decode,
    decode_json,
    decode_yaml,
    duplicates,
    media_type,
    too_large,
)
from kubesched.sandbox.http.query import Query

_APPLY_JSON = "application/apply-patch+json"
_PATCHES = {kind.value: kind for kind in PatchKind} | {_APPLY_JSON: PatchKind.APPLY}


class Body(NamedTuple):
    """What a client sent, and the warnings for it."""

    value: Any
    warnings: tuple[str, ...] = ()
    raw: bytes = b""

    @property
    def object(self) -> Object:
        value: Object = self.value
        return value


class Bodies:
    """Reads bodies of requests."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, request: web.BaseRequest, resource: Resource, query: Query) -> Body:
        """An object of a resource."""
        raw = await read(request)
        value = decode(raw, content_type(request.headers), resource.kind)
        _check_kind(value, resource.kind, resource.api_version)
        return Body(value, self.check(resource, Body(value, raw=raw), query), raw)

    async def read_kind(self, request: web.BaseRequest, kind: str, api_version: str) -> Object:
        """An object that is no resource of its own."""
        value = decode(await read(request), content_type(request.headers), kind)
        _check_kind(value, kind, api_version)
        result: Object = value
        return result

    async def read_patch(self, request: web.BaseRequest) -> tuple[PatchKind, Body]:
        media = media_type(content_type(request.headers))
        kind = _PATCHES.get(media)
        raw = await read(request)
        if kind is None:
            raise unsupported_media_type([each.value for each in PatchKind])
        if kind is PatchKind.APPLY and media != _APPLY_JSON:
            return kind, Body(decode_yaml(raw, "object"), raw=raw)
        return kind, Body(decode_json(raw, "patch"), raw=raw)

    async def read_delete_options(self, request: web.BaseRequest) -> DeleteOptions:
        raw = await read(request)
        if not raw:
            return DeleteOptions()
        return DeleteOptions.read(decode(raw, content_type(request.headers), "DeleteOptions"))

    def check(self, resource: Resource, body: Body, query: Query) -> tuple[str, ...]:
        """Refuse values that cannot be read and, if strict, unknown fields; else warn of those."""
        if not isinstance(body.value, dict):
            raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
        found = field_mistakes(resource, body.value)
        if error := decoding_error(resource, found):
            raise error
        mode = query.field_validation()
        if mode == "Ignore":
            return ()
        twice = duplicates(body.raw) if query.text("fieldValidation") and body.raw[:1] == b"{" else []
        if mode == "Strict":
            if twice:
                raise bad_request(f"strict decoding error: {', '.join(twice)}")
            if error := strict_decoding_error(found):
                raise error
        return tuple(twice + [mistake.message for mistake in found if mistake.unknown])


async def read(request: web.BaseRequest) -> bytes:
    """The whole body, unless it is larger than anything should be."""
    if not request.can_read_body:
        return b""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large() from None


def _check_kind(value: Any, kind: str, api_version: str) -> None:
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    given, version = value.get("kind") or kind, value.get("apiVersion") or api_version
    if version != api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({api_version})"
        )
    if given != kind:
        what = f'no kind "{given}" is registered for version "{version}"'
        raise bad_request(f'{given} in version "{version}" cannot be handled as a {kind}: {what}')

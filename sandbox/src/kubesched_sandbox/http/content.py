"""Content types and bodies: negotiates types, decodes bodies, and checks them by the field table of their kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
from aiohttp import web

from kubesched.admission.schemas import decoding_error, field_mistakes, strict_decoding_error
from kubesched.api.api_error import ApiError, bad_request, unsupported_media_type
from kubesched.api.kinds import Object, Resource
from kubesched.api.yaml import YamlError, documents
from kubesched_sandbox.api import PatchKind
from kubesched_sandbox.api.reading import DeleteOptions
from kubesched_sandbox.custom import custom_schema
from kubesched_sandbox.http.protobuf import ProtobufError, decode_object
from kubesched_sandbox.http.query import Query

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ACCEPTED = (JSON, YAML, PROTOBUF)
LARGEST_BODY = 3 * 1024 * 1024
_DEEPEST = 200
"""Levels of nesting. No kind needs more, and recursive functions over objects stay within the stack."""

_STRUCTURE = re.compile(rb'[\[\]{}]|"(?:[^"\\]|\\.)*"', re.DOTALL)
_decode = msgspec.json.Decoder().decode


def content_type(headers: Mapping[str, str]) -> str:
    """What a body says that it is. JSON if it says nothing, as clients rely on (the official one in Python does).

    Not so from a browser, which says Origin or Sec-Fetch-Site with what a page makes it send: it sends a body without a
    type for any web page without asking here first.
    """
    said = headers.get("Content-Type", "")
    is_browser = "Origin" in headers or "Sec-Fetch-Site" in headers
    return said if said or is_browser else JSON


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def decode(body: bytes, content_type: str, kind: str) -> Any:
    """The value that a body holds; a BadRequest when it holds none."""
    media = media_type(content_type)
    if media == JSON:
        return decode_json(body, kind)
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return decode_yaml(body, kind)
    if media == PROTOBUF:
        return decode_protobuf(body)
    raise unsupported_media_type(ACCEPTED)


def decode_protobuf(body: bytes) -> Any:
    """An object that a Go client sent; a custom resource has no such form."""
    try:
        value = decode_object(body)
    except ProtobufError as error:
        raise bad_request(f"the body of the request cannot be decoded as protobuf: {error}") from None
    if value is None:
        raise unsupported_media_type((JSON, YAML))
    return value


def decode_json(body: bytes, kind: str) -> Any:
    _check_depth(body)
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(kind, f"json parse error: {error}") from None


def decode_yaml(body: bytes, kind: str) -> Any:
    _check_depth(body)
    try:
        found = [document.value for document in documents(body.decode(), most_by_aliases=LARGEST_BODY)]
        # Through JSON, so that whatever comes of YAML is as plain as what comes of JSON.
        return _decode(msgspec.json.encode(found[0])) if found else None
    except (YamlError, UnicodeDecodeError, RecursionError, msgspec.DecodeError, TypeError, ValueError) as error:
        raise _unreadable(kind, f"error converting YAML to JSON: {error}") from None


def duplicates(body: bytes) -> list[str]:
    """The fields that a JSON body gives twice, as warnings word it."""
    found: list[str] = []

    def notice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    found.append(f'duplicate field "{key}"')
                seen.add(key)
        return result

    json.loads(body, object_pairs_hook=notice)
    return found


def _check_depth(body: bytes) -> None:
    if body.count(b"{") + body.count(b"[") <= _DEEPEST:
        return
    depth = 0
    for found in _STRUCTURE.finditer(body):
        token = found.group()
        if token in (b"{", b"["):
            depth += 1
            if depth > _DEEPEST:
                raise bad_request(f"the object provided is nested deeper than {_DEEPEST} levels")
        elif token in (b"}", b"]"):
            depth -= 1


def _unreadable(kind: str, why: str) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why}"
    )


Form = Literal["object", "table", "metadata"]
_FORMS: dict[str, Form] = {
    "": "object",
    "Table": "table",
    "PartialObjectMetadata": "metadata",
    "PartialObjectMetadataList": "metadata",
}


class Accepted(NamedTuple):
    """A format and a shape."""

    media: str = JSON
    form: Form = "object"
    group: str = ""
    """What `as` is a version of, kept for discovery, whose documents have versions too."""
    version: str = ""
    shape: str = ""


@lru_cache(maxsize=512)
def negotiate(header: str) -> Accepted:
    """The first acceptable thing that is offered here; NotAcceptable when there is none.

    Objects are stored as JSON, so protobuf is for clients that accept nothing else.
    """
    if not header:
        return Accepted()
    protobuf: Accepted | None = None
    for media, parameters in sorted(map(_range, header.split(",")), key=_preference):
        shape = parameters.get("as", "")
        form = _FORMS.get(shape)
        if media in ("*/*", "application/*", JSON):
            chosen = JSON
        elif media in (YAML, "text/yaml"):
            chosen = YAML
        elif media == PROTOBUF and form != "table":
            chosen = PROTOBUF
        else:
            continue
        if form is None and parameters.get("g") != "apidiscovery.k8s.io":
            continue
        accepted = Accepted(chosen, form or "object", parameters.get("g", ""), parameters.get("v", ""), shape)
        if chosen != PROTOBUF:
            return accepted
        protobuf = protobuf or accepted
    if protobuf is None:
        raise not_acceptable()
    return protobuf


def takes_only_protobuf(header: str) -> bool:
    try:
        return negotiate(header).media == PROTOBUF
    except ApiError:
        return False


def not_acceptable() -> ApiError:
    """The answer to a client that takes no format in which there is an answer."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(ACCEPTED)}")


def _range(text: str) -> tuple[str, dict[str, str]]:
    media, *parameters = (part.strip() for part in text.split(";"))
    return media.lower(), dict(part.split("=", 1) for part in parameters if "=" in part)


def _preference(parsed: tuple[str, dict[str, str]]) -> float:
    try:
        return -float(parsed[1].get("q", "1"))
    except ValueError:
        return -1.0


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


async def read_object(request: web.BaseRequest, resource: Resource, query: Query) -> Body:
    """An object of a resource."""
    raw = await read(request)
    value = decode(raw, content_type(request.headers), resource.kind)
    _check_kind(value, resource.kind, resource.api_version)
    return Body(value, check_fields(resource, Body(value, raw=raw), query), raw)


async def read_kind(request: web.BaseRequest, kind: str, api_version: str) -> Object:
    """An object that is no resource of its own."""
    value = decode(await read(request), content_type(request.headers), kind)
    _check_kind(value, kind, api_version)
    result: Object = value
    return result


async def read_patch(request: web.BaseRequest) -> tuple[PatchKind, Body]:
    media = media_type(content_type(request.headers))
    kind = _PATCHES.get(media)
    raw = await read(request)
    if kind is None:
        raise unsupported_media_type([kind.value for kind in PatchKind])
    if kind is PatchKind.APPLY and media != _APPLY_JSON:
        return kind, Body(decode_yaml(raw, "object"), raw=raw)
    return kind, Body(decode_json(raw, "patch"), raw=raw)


async def read_delete_options(request: web.BaseRequest) -> DeleteOptions:
    raw = await read(request)
    if not raw:
        return DeleteOptions()
    return DeleteOptions.read(decode(raw, content_type(request.headers), "DeleteOptions"))


def check_fields(resource: Resource, body: Body, query: Query) -> tuple[str, ...]:
    """Refuse values that cannot be read and, if strict, unknown fields; else warn of those."""
    if not isinstance(body.value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    found = field_mistakes(resource, body.value)
    if error := decoding_error(resource, found):
        raise error
    schema = custom_schema(resource)
    unknown = [mistake.message for mistake in found if mistake.unknown]
    unknown += [f'unknown field "{path}"' for path in (schema.unknown_in(body.value) if schema else ())]
    mode = query.field_validation()
    if mode == "Ignore":
        return ()
    twice = duplicates(body.raw) if query.text("fieldValidation") and body.raw[:1] == b"{" else []
    if mode == "Strict":
        if twice:
            raise bad_request(f"strict decoding error: {', '.join(twice)}")
        if unknown:
            raise strict_decoding_error(unknown)
    return tuple(twice + unknown)


async def read(request: web.BaseRequest) -> bytes:
    """The whole body, unless it is larger than anything should be."""
    if not request.can_read_body:
        return b""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        message = f"Request entity too large: limit is {LARGEST_BODY}"
        raise ApiError(413, "RequestEntityTooLarge", message) from None


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

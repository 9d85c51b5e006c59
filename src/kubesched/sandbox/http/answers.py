"""Answers: bytes or objects in the format that the client accepts."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence

import msgspec
import yaml
from aiohttp import web
from multidict import CIMultiDict

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Object
from kubesched.http.errors import status_response
from kubesched.sandbox.http.content import JSON, YAML

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

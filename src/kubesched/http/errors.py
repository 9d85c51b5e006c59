"""Errors as documents: kubesched's own `Error`, and the API server's `Status`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError

_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")
"""Headers of a refusal that tell the client what to do."""
_STATUS_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}

log = logging.getLogger(__name__)


def errors_as_documents(api_version: str, codes: Mapping[type[Exception], int]) -> Middleware:
    """The middleware that answers with an Error where a handler raises.

    `codes` are those of exceptions that the document tells about; a UserError that is not among them is a 400. Mistakes
    of this program are logged, and the document says no more than that they are such.
    """
    codes_by_kind: dict[type[Exception], int] = {**codes, UserError: 400}
    kinds = tuple(codes_by_kind)

    def refusal(code: int, *lines: str, headers: Mapping[str, str] | None = None) -> web.Response:
        document = {"apiVersion": api_version, "kind": "Error", "code": code, "errors": list(lines)}
        return json_response(document, status=code, headers=headers)

    @web.middleware
    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except msgspec.DecodeError as error:
            return refusal(400, _place_first(error))
        except kinds as error:
            code = next(code for kind, code in codes_by_kind.items() if isinstance(error, kind))
            if code == 500:
                log.error("%s", error, exc_info=error)
            lines = error.lines if isinstance(error, UserError) else [str(error)]
            return refusal(code, *lines, headers={"Retry-After": "1"} if code in (429, 503) else None)
        except TimeoutError:
            return refusal(408, "the question did not arrive in time")
        except web.HTTPException as error:
            kept = {name: error.headers[name] for name in _KEPT if name in error.headers}
            return refusal(error.status, (error.text or error.reason).rstrip("\n"), headers=kept)
        except ConnectionError:  # the client went away
            raise
        except Exception:
            log.exception("a question could not be answered")
            return refusal(500, "a mistake in kubesched: its log says more")

    return answer


def json_response(document: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(document)
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


def status_response(error: ApiError, *, headers: Mapping[str, str] | None = None, **more: Any) -> web.Response:
    """The error as the API server answers with it. `more` are fields of the Status."""
    return json_response({**error.status(), **more}, status=error.code, headers={**_STATUS_HEADERS, **(headers or {})})


def _place_first(error: msgspec.DecodeError) -> str:
    """The text of msgspec's error with the path first, as in all other messages."""
    text, _, place = str(error).rpartition(" - at `$")
    return f"{place[:-1].lstrip('.') or 'body'}: {text}" if text else f"body: {error}"

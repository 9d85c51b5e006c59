"""Nobody gets further than here without being known and allowed: refusals in the words of the API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from kubesched.daemon.logging import Log
from kubesched.daemon.serving.authentication import Authenticator, UnauthorizedError
from kubesched.daemon.serving.authorization import Authorizer
from kubesched.daemon.serving.reviews import ReviewError, User

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]

log = Log(__name__)

_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


def guard(authenticator: Authenticator, authorizer: Authorizer) -> Middleware:
    """Lets requests through whose user may make them."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        verb = request.method.lower()
        try:
            user = await authenticator.user_of(request.headers, connection)
        except UnauthorizedError:
            return _refusal(401, "Unauthorized", "Unauthorized")
        except ReviewError as problem:  # whoever cannot be told from an impostor is treated as one
            log.error("Unable to authenticate the request", err=problem)
            return _refusal(401, "Unauthorized", "Unauthorized")
        try:
            verdict = await authorizer.may(user, verb, request.path)
        except ReviewError as problem:
            log.error("A request could not be authorized", err=problem, path=request.path)
            text = f'Internal Server Error: "{request.path_qs}": {problem}\n'
            return web.Response(status=500, text=_harmless(text), headers=_HEADERS)
        if not verdict.allowed:
            log.info("Forbidden", v=4, URI=request.path_qs, reason=verdict.reason)
            return _refusal(403, "Forbidden", _forbidden(user, verb, request.path, verdict.reason), details={})
        response = await handler(request)
        if not response.prepared:
            response.headers.setdefault("Cache-Control", _HEADERS["Cache-Control"])
        return response

    return guarded


def _forbidden(user: User, verb: str, path: str, reason: str) -> str:
    message = _harmless(f'User "{user.name}" cannot {verb} path "{path}"')
    return f"forbidden: {message}: {reason}" if reason else f"forbidden: {message}"


def _harmless(text: str) -> str:
    """Nothing that a browser would take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _refusal(code: int, reason: str, message: str, **more: Any) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **more,
        "code": code,
    }
    return web.json_response(status, status=code, headers=_HEADERS)

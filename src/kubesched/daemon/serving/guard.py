"""Authorization, and the check that lets no request pass without it: refusals in the words of the API server."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping

from aiohttp import web

from kubesched.api.api_error import ApiError
from kubesched.daemon.log import Log
from kubesched.daemon.serving.authentication import Authenticator, UnauthorizedError
from kubesched.daemon.serving.reviews import AccessDecision, AccessReviewer, ReviewError, UserInfo
from kubesched.http.access import PERIOD, Check, RefusalLimiter
from kubesched.http.errors import status_response

ADMINISTRATORS = "system:masters"

log = Log(__name__)

_UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized")
_TOO_MANY = ApiError(429, "TooManyRequests", f"too many requests that were refused; wait {PERIOD:g} seconds")


class Authorizer:
    """Decides about paths."""

    def __init__(self, always_allow_paths: Iterable[str], access: AccessReviewer | None) -> None:
        """Without a reviewer, all other paths are forbidden."""
        paths = [path.removeprefix("/") for path in always_allow_paths]
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._access = access

    def is_open(self, path: str) -> bool:
        """Whether reading it needs no authorization."""
        relative = path.removeprefix("/")
        return relative in self._paths or relative.startswith(self._prefixes)

    async def may(self, user: UserInfo, verb: str, path: str) -> AccessDecision:
        """ReviewError if that cannot be found out."""
        if ADMINISTRATORS in user.groups or self.is_open(path):
            return AccessDecision(allowed=True)
        if self._access is None:
            return AccessDecision(allowed=False)
        return await self._access.may(user, verb, path)


def headers_of(request: web.Request) -> Mapping[str, str]:
    return request.headers


def require_authorization(
    authenticator: Authenticator,
    authorizer: Authorizer,
    limiter: RefusalLimiter,
    credentials: Callable[[web.Request], Mapping[str, str]] = headers_of,
) -> Check:
    """Check that the user of a request may make it. `credentials` are the headers that name the user."""

    async def check(request: web.Request) -> web.Response | None:
        address = request.remote or ""
        needs_review = "Authorization" in credentials(request) or not authorizer.is_open(request.path)
        if needs_review and limiter.is_limited(address):
            return status_response(_TOO_MANY)
        refusal = await refusal_of(request)
        if refusal is not None:
            limiter.count(address)
        return refusal

    async def refusal_of(request: web.Request) -> web.Response | None:
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        verb = request.method.lower()
        try:
            user = await authenticator.user_of(credentials(request), connection)
        except UnauthorizedError:
            return status_response(_UNAUTHORIZED)
        except ReviewError as error:  # a user who cannot be verified is refused
            log.error("Unable to authenticate the request", err=error)
            return status_response(_UNAUTHORIZED)
        try:
            decision = await authorizer.may(user, verb, request.path)
        except ReviewError as error:
            log.error("A request could not be authorized", err=error, path=request.path)
            text = f'Internal Server Error: "{request.path_qs}": {error}\n'
            return web.Response(status=500, text=_harmless(text), headers={"X-Content-Type-Options": "nosniff"})
        if decision.allowed:
            return None
        log.info("Forbidden", v=4, URI=request.path_qs, reason=decision.reason)
        forbidden = ApiError(403, "Forbidden", _forbidden(user, verb, request.path, decision.reason))
        return status_response(forbidden, details={})

    return check


def _forbidden(user: UserInfo, verb: str, path: str, reason: str) -> str:
    message = _harmless(f'User "{user.name}" cannot {verb} path "{path}"')
    return f"forbidden: {message}: {reason}" if reason else f"forbidden: {message}"


def _harmless(text: str) -> str:
    """Nothing that a browser would take for HTML."""
    return html.escape(text, quote=False)

"""Authorization, and the middleware that lets no request pass without it: refusals in the words of the API server."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from kubesched.api.api_error import ApiError
from kubesched.daemon.log import Log
from kubesched.daemon.serving.authentication import Authenticator, UnauthorizedError
from kubesched.daemon.serving.reviews import AccessReviewer, ReviewError, User, Verdict

ADMINISTRATORS = "system:masters"

REFUSALS, PERIOD = 20, 10.0
"""So many refusals within so many seconds, and an address has to wait for the end of that time."""
_MOST_ADDRESSES = 4096


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

    async def may(self, user: User, verb: str, path: str) -> Verdict:
        """ReviewError if that cannot be found out."""
        if ADMINISTRATORS in user.groups or self.is_open(path):
            return Verdict(allowed=True)
        if self._access is None:
            return Verdict(allowed=False)
        return await self._access.may(user, verb, path)


class Strangers:
    """Counts refusals by address: each cost the API server a review or two, which a client must not cause at will.

    Whoever is let in is never counted, so that scrapers and administrators are not limited.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refusals: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By address, the beginning of its period and the refusals since; the oldest first."""

    def is_limited(self, address: str) -> bool:
        """Whether the address was refused too often of late."""
        since, count = self._refusals.get(address, (0.0, 0))
        return count >= REFUSALS and self._clock() - since < PERIOD

    def refused(self, address: str) -> None:
        now = self._clock()
        since, count = self._refusals.pop(address, (now, 0))
        self._refusals[address] = (since, count + 1) if now - since < PERIOD else (now, 1)
        while len(self._refusals) > _MOST_ADDRESSES:
            self._refusals.popitem(last=False)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]

log = Log(__name__)

_UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized")
_TOO_MANY = ApiError(429, "TooManyRequests", f"too many requests that were refused; wait {PERIOD:g} seconds")
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


def headers_of(request: web.Request) -> Mapping[str, str]:
    return request.headers


def guard(
    authenticator: Authenticator,
    authorizer: Authorizer,
    strangers: Strangers,
    credentials: Callable[[web.Request], Mapping[str, str]] = headers_of,
) -> Middleware:
    """Lets requests through whose user may make them. `credentials` are the headers that say who that is."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        address = request.remote or ""
        needs_review = "Authorization" in credentials(request) or not authorizer.is_open(request.path)
        if needs_review and strangers.is_limited(address):
            return _refusal(_TOO_MANY)
        answer = await allowed(request)
        if answer is not None:
            strangers.refused(address)
            return answer
        response = await handler(request)
        if not response.prepared:
            response.headers.setdefault("Cache-Control", _HEADERS["Cache-Control"])
        return response

    async def allowed(request: web.Request) -> web.Response | None:
        """None if the request may be made; else the answer."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        verb = request.method.lower()
        try:
            user = await authenticator.user_of(credentials(request), connection)
        except UnauthorizedError:
            return _refusal(_UNAUTHORIZED)
        except ReviewError as error:  # a user who cannot be verified is refused
            log.error("Unable to authenticate the request", err=error)
            return _refusal(_UNAUTHORIZED)
        try:
            verdict = await authorizer.may(user, verb, request.path)
        except ReviewError as error:
            log.error("A request could not be authorized", err=error, path=request.path)
            text = f'Internal Server Error: "{request.path_qs}": {error}\n'
            return web.Response(status=500, text=_harmless(text), headers=_HEADERS)
        if not verdict.allowed:
            log.info("Forbidden", v=4, URI=request.path_qs, reason=verdict.reason)
            return _refusal(
                ApiError(403, "Forbidden", _forbidden(user, verb, request.path, verdict.reason)), details={}
            )
        return None

    return guarded


def _forbidden(user: User, verb: str, path: str, reason: str) -> str:
    message = _harmless(f'User "{user.name}" cannot {verb} path "{path}"')
    return f"forbidden: {message}: {reason}" if reason else f"forbidden: {message}"


def _harmless(text: str) -> str:
    """Nothing that a browser would take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _refusal(error: ApiError, **more: Any) -> web.Response:
    return web.json_response({**error.status(), **more}, status=error.code, headers=_HEADERS)

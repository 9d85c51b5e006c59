"""TokenReviews and SubjectAccessReviews ask who a user is and what they may do; answers are kept for a while."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T")

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SECONDS = 10.0
"""Seconds that an answer may take."""

_MOST = 4096
"""Answers that a cache keeps at most."""
_AT_ONCE = 4


class ReviewApi(Protocol):
    """The part of an API client that reviews need. Any exception means that there is no answer."""

    async def get(self, path: str) -> bytes:
        """The body of the answer."""

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer."""


class ReviewedUser(msgspec.Struct, frozen=True):
    """A user, as Kubernetes knows them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ReviewError(Exception):
    """The API server could not be asked."""


class ReviewCache(Generic[T]):
    """Answers by question, each for its lifetime. Of equal questions one is asked, and all wait for its answer.

    Only four different ones are asked at once, so that a flood of them neither waits for connections nor burdens the
    API server.
    """

    def __init__(self, lifetime: Callable[[T], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._lifetime = lifetime
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._asking: dict[Hashable, asyncio.Task[T]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def get(self, question: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        kept = self._answers.get(question)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        task = self._asking.get(question)
        if task is None:
            task = self._asking[question] = asyncio.ensure_future(self._ask(question, ask))
        return await asyncio.shield(task)

    async def _ask(self, question: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            async with self._turns:
                answer = await ask()
        finally:
            del self._asking[question]
        self._answers[question] = (self._clock() + self._lifetime(answer), answer)
        self._answers.move_to_end(question)
        while len(self._answers) > _MOST:
            self._answers.popitem(last=False)
        return answer


class TokenReviewer:
    """Asks whose a token is."""

    def __init__(self, api: ReviewApi, *, ttl: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._cache: ReviewCache[ReviewedUser | None] = ReviewCache(lambda _: ttl, clock)

    async def user_of(self, token: str) -> ReviewedUser | None:
        """The user of a token; None if the token is not valid. ReviewError if the API server cannot be asked."""
        # Tokens are secrets, so only their hashes are remembered.
        return await self._cache.get(hashlib.sha256(token.encode()).digest(), lambda: self._review(token))

    async def _review(self, token: str) -> ReviewedUser | None:
        question = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await _post_review(self._api, TOKEN_REVIEWS, question)).get("status") or {}
        if not status.get("authenticated"):
            return None
        user = status.get("user") or {}
        extra = tuple((key, tuple(values)) for key, values in (user.get("extra") or {}).items())
        return ReviewedUser(user.get("username") or "", user.get("uid") or "", tuple(user.get("groups") or ()), extra)


class AccessDecision(msgspec.Struct, frozen=True):
    """Whether a user may do something, and the API server's reason."""

    allowed: bool
    reason: str = ""


class AccessReviewer:
    """Asks whether a user may do something."""

    def __init__(
        self, api: ReviewApi, *, allowed_ttl: float, denied_ttl: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._cache: ReviewCache[AccessDecision] = ReviewCache(
            lambda v: allowed_ttl if v.allowed else denied_ttl, clock
        )

    async def may(self, user: ReviewedUser, verb: str, path: str) -> AccessDecision:
        """ReviewError if the API server cannot be asked."""
        return await self._cache.get((user, verb, path), lambda: self._review(user, verb, path))

    async def _review(self, user: ReviewedUser, verb: str, path: str) -> AccessDecision:
        spec: dict[str, Any] = {
            "nonResourceAttributes": {"path": path, "verb": verb},
            "user": user.name,
            "groups": user.groups,
            "uid": user.uid,
            "extra": dict(user.extra),
        }
        question = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {name: value for name, value in spec.items() if value},
        }
        status = (await _post_review(self._api, ACCESS_REVIEWS, question)).get("status") or {}
        return AccessDecision(bool(status.get("allowed")), status.get("reason") or "")


async def _post_review(api: ReviewApi, path: str, question: dict[str, Any]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SECONDS):
            answer = msgspec.json.decode(await api.post(path, msgspec.json.encode(question)))
    except TimeoutError:
        raise ReviewError(f"no answer to POST {path} within {SECONDS:g}s") from None
    except Exception as error:
        raise ReviewError(str(error) or type(error).__name__) from error
    if not isinstance(answer, dict):
        raise ReviewError(f"the answer to POST {path} is no object")
    return answer

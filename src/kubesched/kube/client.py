"""Requests to the API server: throttled, retried where that is safe, observed; errors are typed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, KubeError, UnreachableError
from kubesched.kube.http_connection import AnswerStream, HttpResponse
from kubesched.kube.observer import NO_ANSWER, Observer
from kubesched.kube.transport import JSON, Transport, user_agent

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


class Throttle:
    """Holds `burst` tokens, refilled at `qps` a second. Negative QPS is no limit; zero means client-go's default."""

    def __init__(self, qps: float, burst: int, *, clock: Callable[[], float]) -> None:
        self._qps = qps or DEFAULT_QPS
        self._burst = burst or DEFAULT_BURST
        self._clock = clock
        self._tokens = float(self._burst)
        self._filled_at = clock()

    def reserve(self) -> float:
        """Take a token and say in how many seconds it may be used: 0 is now. Later callers wait longer."""
        if self._qps < 0:
            return 0.0
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps) - 1
        self._filled_at = now
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    def give_back(self) -> None:
        """Return the token of a request that gave up waiting."""
        self._tokens += 1


class LineSplitter:
    """Joins pieces of bytes to whole lines, of any length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ended, without empty ones."""
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._parts.append(data)
            return []
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
        if lines[-1]:
            self._parts.append(lines[-1])
        del lines[-1]
        return [line for line in lines if line]


class WatchStream:
    """An open watch."""

    def __init__(self, stream: AnswerStream, silence: float) -> None:
        self._stream = stream
        self._silence = silence
        self._splitter = LineSplitter()

    async def lines(self) -> list[bytes]:
        """The lines received since the last call, at least one; none at the end.

        Raises AnswerTimeoutError after too much silence, UnreachableError if the connection broke.
        """
        while data := await self._stream.read(self._silence):
            if lines := self._splitter.feed(data):
                return lines
        return []

    def close(self) -> None:
        """Hang up; a task that waits for lines gets UnreachableError."""
        self._stream.close()


MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

TIMEOUT = 60.0
RETRIES = 10  # client-go's
LONGEST_RETRY_AFTER = 60.0
"""Seconds. A server that asks for more, by mistake or malice, must not stop the scheduler: client-go has no limit."""
_PAUSE = 1.0  # seconds before a connection is tried again

log = logging.getLogger(__name__)


Answered = Coroutine[Any, Any, bytes]
"""The body of a good answer, to be awaited."""


class Client:
    """One user of a transport, with limits of its own."""

    def __init__(
        self,
        transport: Transport,
        throttle: Throttle,
        *,
        observer: Observer | None = None,
        agent: str = "",
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._throttle = throttle
        self._observer = observer or Observer()
        self._agent = agent or user_agent()
        self._clock = clock
        self._sleep = sleep
        self.may_write: Callable[[], bool] = lambda: True
        """Asked before the first byte of anything but a GET: a replica that lost the lease writes no more."""

    def get(self, path: str, *, timeout: float = TIMEOUT, retries: int = RETRIES) -> Answered:
        return self.request("GET", path, timeout=timeout, retries=retries)

    def post(self, path: str, body: bytes, *, timeout: float = TIMEOUT, retries: int = RETRIES) -> Answered:
        return self.request("POST", path, body, timeout=timeout, retries=retries)

    def put(self, path: str, body: bytes, *, timeout: float = TIMEOUT, retries: int = RETRIES) -> Answered:
        return self.request("PUT", path, body, timeout=timeout, retries=retries)

    def patch(
        self, path: str, body: bytes, *, content_type: str, timeout: float = TIMEOUT, retries: int = RETRIES
    ) -> Answered:
        return self.request("PATCH", path, body, content_type=content_type, timeout=timeout, retries=retries)

    def delete(self, path: str, body: bytes = b"", *, timeout: float = TIMEOUT, retries: int = RETRIES) -> Answered:
        return self.request("DELETE", path, body, timeout=timeout, retries=retries)

    def distrust(self) -> None:
        """Send the next requests on new connections: the server at the other end of the present ones may be gone."""
        self._transport.distrust()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        content_type: str = JSON,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> bytes:
        """The body of a good answer. Raises ApiStatusError for others, UnreachableError if there was none.

        After an answer with Retry-After (429 and 5xx) any method is tried again: the server did not do it, or says that
        doing it twice does no harm. After a broken connection only a GET is tried again, as a write may have been done.
        The timeout is for each try, from asking for credentials to the last byte, but not for the client's own limits.
        """
        transport, observer, host = self._transport, self._observer, self._transport.host
        may_send = _always if method == "GET" else self.may_write
        started, received, attempt, maybe_done = self._clock(), None, 0, False
        try:
            while True:
                if wait := self._throttle.reserve():
                    await self._wait_for_turn(wait)
                code = NO_ANSWER
                try:
                    answer = await transport.send(
                        method, path, body, content_type, agent=self._agent, timeout=timeout, may_send=may_send
                    )
                    code = str(answer.status)
                    if answer.status < 300:
                        received = len(answer.body)
                        return answer.body
                    pause = _retry_after(answer)
                    if pause is None or attempt >= retries:
                        received = len(answer.body)
                        raise _error_of(answer, maybe_done)
                    maybe_done |= answer.status >= 500
                except UnreachableError as error:
                    error.maybe_done |= maybe_done
                    if not _is_worth_a_retry(method, error) or attempt >= retries:
                        raise _with_request(error, method, host, path) from error
                    # The first time it may just be that the server closed an idle connection.
                    pause = _PAUSE if attempt else 0.0
                    log.debug("%s %s: %s; trying again", method, path, error)
                except KubeError as error:
                    error.maybe_done |= maybe_done
                    raise
                finally:
                    observer.answered(method, host, code, wait)
                    if attempt:
                        observer.retried(method, host, code)
                attempt += 1
                if pause:
                    await self._sleep(pause)
        finally:
            observer.finished(method, host, self._clock() - started, len(body), received)

    async def watch(self, path: str, *, silence: float, timeout: float = TIMEOUT) -> WatchStream:
        """An open watch whose server may be silent for so many seconds. Raises as `request`, but never tries again.

        Watches have no limits, as in client-go: without them, nothing else is of any use.
        """
        code = NO_ANSWER
        try:
            stream = await self._transport.open(path, agent=self._agent, timeout=timeout)
            code = str(stream.head.status)
            if stream.head.status >= 300:
                answer = HttpResponse(stream.head.status, stream.head.headers, await _rest_of(stream, timeout))
                raise _error_of(answer)
            return WatchStream(stream, silence)
        except UnreachableError as error:
            raise _with_request(error, "GET", self._transport.host, path) from error
        finally:
            self._observer.answered("GET", self._transport.host, code)

    async def _wait_for_turn(self, seconds: float) -> None:
        try:
            await self._sleep(seconds)
        except asyncio.CancelledError:
            self._throttle.give_back()
            raise


def _is_worth_a_retry(method: str, error: UnreachableError) -> bool:
    """Whether a connection broke after a GET was sent. Callers decide about servers that are out of reach, or slow."""
    return method == "GET" and error.maybe_done and not isinstance(error, AnswerTimeoutError)


def _error_of(answer: HttpResponse, maybe_done: bool = False) -> ApiStatusError:
    """Made apart from where it is raised: a variable of that frame would hold it by its own traceback."""
    error = ApiStatusError.of_answer(answer.status, answer.body, _retry_after(answer))
    error.maybe_done = maybe_done
    return error


def _retry_after(answer: HttpResponse) -> float | None:
    """The seconds in Retry-After, where it means that the same request may succeed later."""
    if answer.status != 429 and answer.status < 500:
        return None
    after = answer.headers.get("retry-after", "")
    return min(float(after), LONGEST_RETRY_AFTER) if after.isascii() and after.isdigit() else None


async def _rest_of(stream: AnswerStream, timeout: float) -> bytes:
    """The body of an answer that is an error instead of a watch."""
    try:
        async with asyncio.timeout(timeout):
            return await stream.read_all()
    except TimeoutError:
        raise AnswerTimeoutError(f"no whole answer within {timeout:g} s", maybe_done=True) from None
    finally:
        stream.close()


def _always() -> bool:
    return True


def _with_request(error: UnreachableError, method: str, host: str, path: str) -> UnreachableError:
    """The same error, with the request in its message."""
    return type(error)(f"{method} {host}{path.partition('?')[0]}: {error}", maybe_done=error.maybe_done)

"""One HTTP/1.1 connection as an asyncio protocol: one request at a time, its answer whole or as a stream.

Written by hand because it is on the way of every pod twice: docs/decisions/012-own-http-client.md says what it saves.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import msgspec

from kubesched.kube.errors import AnswerTimeoutError, UnreachableError
from kubesched.kube.http_parser import Head, HttpSyntaxError, ResponseParser, whole_answer

_MOST_BUFFERED = 32 << 20
"""Bytes of a stream that wait for their reader before the server is held back. Servers cut a watch whose client does
not keep up, so bytes are read while pods are decided, too: this is some 7,000 events."""
_READ_AT_ONCE = 1 << 20
"""Bytes that a reader gets at most, or one piece if that is longer: it keeps them until all are handled."""


class HttpResponse(msgspec.Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpConnection(asyncio.BufferedProtocol):
    """An open connection. `lost` is called once when it ends, for whatever reason."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, lost: Callable[[HttpConnection], None], buffer: bytearray
    ) -> None:
        """All reads go into the buffer, which all connections on one event loop may share.

        Without it, Python's TLS allocates 256 KB for each read, though most answers have a few hundred bytes.
        """
        self._loop = loop
        self._lost = lost
        self._buffer = memoryview(buffer)
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        """Of a stream, or of an answer that comes piece by piece."""
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._stream: AnswerStream | None = None
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """A further request can be sent."""
        is_free = self._answer is None and self._stream is None
        return is_free and self._transport is not None and not self._transport.is_closing()

    def request(self, data: bytes) -> asyncio.Future[HttpResponse]:
        """Send the bytes of a request; the future gets the whole answer. To give it up, close the connection."""
        if self._transport is None or not self.usable:
            raise UnreachableError("the connection is closed")
        answer = self._answer = self._loop.create_future()
        self._transport.write(data)
        return answer

    async def open_stream(self, data: bytes) -> AnswerStream:
        """Send the bytes of a request and wait for the head of the answer. The stream owns the connection then."""
        if self._transport is None or not self.usable:
            raise UnreachableError("the connection is closed")
        stream = self._stream = AnswerStream(self, self._loop)
        self._parser = ResponseParser()
        self._transport.write(data)
        try:
            await stream.opened
            return stream
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            del stream  # an error has this frame in its traceback, and would hold itself by it, and all that came

    def close(self) -> None:
        """Hang up now, without waiting for the other side."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def hold_back(self, is_held: bool) -> None:
        """Stop or resume reading: a slow reader of a stream must not fill the memory."""
        if self._transport is None or self._transport.is_closing():
            return
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _fail(self, error: UnreachableError) -> None:
        answer, self._answer = self._answer, None  # the error's traceback has the waiting frame, and by it this object
        if answer is not None and not answer.done():
            answer.set_exception(error)
        if self._stream is not None:
            self._stream.fail(error)
        self.close()

    # What asyncio calls:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        try:
            if (parser := self._parser) is None:
                if self._answer is None:
                    self.close()  # an answer to nothing
                    return
                if (whole := whole_answer(data)) is not None:
                    self._finish(*whole)
                    return
                parser = self._parser = ResponseParser()
            parser.feed(data)
        except HttpSyntaxError as error:
            self._fail(UnreachableError(str(error), maybe_done=True))
            return
        self._progress(parser)

    def eof_received(self) -> bool:
        if self._answer is None and self._stream is None:
            return False
        parser = self._parser or ResponseParser()
        try:
            parser.feed_end()
        except HttpSyntaxError as error:
            self._fail(UnreachableError(str(error), maybe_done=True))
            return False
        self._progress(parser)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None or self._stream is not None:
            self._fail(UnreachableError(f"the connection was lost{f': {exc}' if exc else ''}", maybe_done=True))
        self._transport = None
        if self._stream is not None:
            self._stream.stop_timer()
            self._stream = None  # which has the connection: they would hold each other
        self._lost(self)

    def _progress(self, parser: ResponseParser) -> None:
        head = parser.head
        if head is None:
            return
        if self._stream is not None:
            self._stream.feed(head, parser)
        elif parser.complete:
            self._parser = None
            if parser.excess:
                self.close()
            self._finish(head, b"".join(parser.pieces))

    def _finish(self, head: Head, body: bytes) -> None:
        """Hand the answer over; the connection is free again unless something says it is not."""
        answer, self._answer = self._answer, None
        # An early answer: the rest of the request would be sent before the next one.
        unsent = self._transport is not None and self._transport.get_write_buffer_size() > 0
        if not head.keep_alive or unsent:
            self.close()
        if answer is not None and not answer.done():
            answer.set_result(HttpResponse(head.status, head.headers, body))


class AnswerStream:
    """An answer that is read while it comes. Close it when done: its connection is not used again."""

    def __init__(self, connection: HttpConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._held = False
        self._ended = False
        self._error: UnreachableError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waits_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.opened: asyncio.Future[None] = loop.create_future()
        self.head = Head(0, {}, False)

    async def read(self, timeout: float | None = None) -> bytes:
        """Bytes received since the last call, all or many of them; waits for some. Empty at the end of the answer.

        Raises AnswerTimeoutError after `timeout` seconds of silence, UnreachableError if the answer broke off.
        """
        if not self._pieces and not self._ended and self._error is None:
            await self._wait(timeout)
        if self._pieces:
            return self._take_pieces()
        if self._error is not None:
            raise _copy_of(self._error)
        return b""

    def _take_pieces(self) -> bytes:
        """The next bytes that wait for a reader."""
        pieces = [self._pieces.popleft()]
        size = len(pieces[0])
        while self._pieces and size + len(self._pieces[0]) <= _READ_AT_ONCE:
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1])
        self._buffered -= size
        if self._held and self._buffered <= _MOST_BUFFERED // 2:
            self._held = False
            self._connection.hold_back(False)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read_all(self, timeout: float | None = None) -> bytes:
        """The rest of the answer."""
        parts = []
        while part := await self.read(timeout):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    async def _wait(self, timeout: float | None) -> None:
        waiter = self._waiter = self._loop.create_future()
        if timeout is not None:
            self._waits_until = self._loop.time() + timeout
            if self._timer is None or self._timer.when() > self._waits_until:
                self._set_timer(timeout)
        try:
            await waiter
        finally:
            self._waiter = None

    def _set_timer(self, timeout: float) -> None:
        """Set the timer for the present wait. One timer serves all waits: events of a watch come by the thousand."""
        self.stop_timer()
        self._timer = self._loop.call_at(self._waits_until, self._expire, timeout)

    def stop_timer(self) -> None:
        """Nothing more will come."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, timeout: float) -> None:
        self._timer = None
        if self._waiter is None:
            return  # the next wait sets a timer of its own
        if self._loop.time() < self._waits_until:
            self._set_timer(timeout)
            return
        self.fail(AnswerTimeoutError(f"nothing was sent for {timeout:g} s"))
        self._connection.close()

    def feed(self, head: Head, parser: ResponseParser) -> None:
        """More of the answer came."""
        if not self.opened.done():
            self.head = head
            self.opened.set_result(None)
        if parser.pieces:
            self._buffered += sum(map(len, parser.pieces))
            self._pieces += parser.pieces
            parser.pieces.clear()
        if self._buffered > _MOST_BUFFERED and not self._held:
            self._held = True
            self._connection.hold_back(True)
        if parser.complete:
            self._ended = True
        self._wake()

    def fail(self, error: UnreachableError) -> None:
        """The answer broke off."""
        if self._ended or self._error is not None:
            return
        self._error = error
        if not self.opened.done():
            self.opened.set_exception(error)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _copy_of(error: UnreachableError) -> UnreachableError:
    """An equal error: the traceback of one that the stream keeps would hold the stream, with all its bytes."""
    return type(error)(str(error), maybe_done=error.maybe_done)

"""HTTP/1.1 answers from bytes, however they are cut: no I/O, one parser per answer."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST_HEAD = 64 * 1024
_LONGEST_CHUNK_LINE = 4096

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?\Z")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z", re.DOTALL)
_AUDIT_ID = b"\r\nAudit-Id:"
_DIGITS = re.compile(r"[0-9]{1,18}\Z")


class HttpSyntaxError(Exception):
    """The bytes are not an HTTP/1.1 answer."""


class Head(NamedTuple):
    """Status and headers of an answer. Answers may share a head, so nobody may change it.

    Names of headers are in lower case, repeated headers are joined by commas; Audit-Id is left out.
    """

    status: int
    headers: dict[str, str]
    keep_alive: bool
    length: int = 0
    """Of the body in bytes; or what else ends it: _IN_CHUNKS, _UNTIL_CLOSED."""


_IN_CHUNKS, _UNTIL_CLOSED = -1, -2


# What is expected next. Plain numbers, because they are compared for every chunk of every watch.
_HEAD, _LENGTH, _CHUNK_SIZE_LINE, _CHUNK, _CHUNK_END, _TRAILERS, _ANYTHING, _NOTHING = range(8)


class ResponseParser:
    """Parses bytes as they come: `head` is set once it is whole, `pieces` are the parts of the body so far."""

    __slots__ = ("_expected", "_left", "_rest", "_trailer_bytes", "excess", "head", "pieces")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.pieces: list[bytes] = []
        self.excess = False
        """Bytes came after the end of the answer: nothing further on this connection can be trusted."""
        self._expected = _HEAD
        self._rest = b""
        self._left = 0
        self._trailer_bytes = 0

    @property
    def complete(self) -> bool:
        return self._expected == _NOTHING

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises HttpSyntaxError."""
        if self._expected == _HEAD:
            rest = self._feed_head(self._rest + data if self._rest else data)
            if not rest:
                return
            data = rest
        if self._expected == _LENGTH:
            self._feed_length(data)
        elif self._expected == _ANYTHING:
            self.pieces.append(data)
        elif self._expected == _NOTHING:
            self.excess = True
        else:
            self._feed_chunked(data)

    def feed_end(self) -> None:
        """The server closed the connection, which properly ends only an answer without a length."""
        if self._expected == _ANYTHING:
            self._expected = _NOTHING
        elif self._expected != _NOTHING:
            has_begun = self._expected != _HEAD or self._rest
            where = "in the middle of an answer" if has_begun else "before an answer"
            raise HttpSyntaxError(f"the server closed the connection {where}")

    def _feed_head(self, data: bytes) -> bytes:
        """Parse the head, if it is whole, and return the bytes after it. Interim answers (1xx) are skipped."""
        while True:
            end = data.find(b"\r\n\r\n")
            if end > LONGEST_HEAD or (end < 0 and len(data) > LONGEST_HEAD):
                raise HttpSyntaxError(f"the head of the answer is longer than {LONGEST_HEAD} bytes")
            if end < 0:
                self._rest = data
                return b""
            self._rest = b""
            head = _head_of(data[:end])
            data = data[end + 4 :]
            if head.status == 101:
                raise HttpSyntaxError("the server switched protocols without being asked to")
            if head.status >= 200:
                break
        self.head = head
        self._left = head.length
        if head.length > 0:
            self._expected = _LENGTH
        else:
            self._expected = {_IN_CHUNKS: _CHUNK_SIZE_LINE, _UNTIL_CLOSED: _ANYTHING}.get(head.length, _NOTHING)
        return data

    def _feed_length(self, data: bytes) -> None:
        if len(data) > self._left:
            data = data[: self._left]
            self.excess = True
        self.pieces.append(data)
        self._left -= len(data)
        if not self._left:
            self._expected = _NOTHING

    def _feed_chunked(self, data: bytes) -> None:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, end = 0, len(data)
        while at < end:
            if self._expected == _CHUNK:
                stop = min(at + self._left, end)
                self.pieces.append(data[at:stop])
                self._left -= stop - at
                at = stop
                if not self._left:
                    self._expected = _CHUNK_END
                continue
            if self._expected == _NOTHING:
                self.excess = True
                return
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                if end - at > _LONGEST_CHUNK_LINE:
                    raise HttpSyntaxError("the line before a chunk does not end")
                self._rest = data[at:]
                return
            self._chunk_line(data[at:line_end])
            at = line_end + 2

    def _chunk_line(self, line: bytes) -> None:
        if self._expected == _CHUNK_END:
            if line:
                raise HttpSyntaxError("a chunk is longer than it said")
            self._expected = _CHUNK_SIZE_LINE
        elif self._expected == _TRAILERS:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > LONGEST_HEAD:
                raise HttpSyntaxError("the trailers of the answer do not end")
            if not line:
                self._expected = _NOTHING
        else:
            size = _CHUNK_SIZE.match(line)
            if size is None:
                raise HttpSyntaxError(f"{line[:20]!r} is not the size of a chunk")
            self._left = int(size[1], 16)
            self._expected = _CHUNK if self._left else _TRAILERS


def whole_answer(data: bytes) -> tuple[Head, bytes] | None:
    """Head and body of an answer that came in one piece, as nearly all do; None if it takes a parser to tell.

    Raises HttpSyntaxError.
    """
    end = data.find(b"\r\n\r\n")
    if not 0 <= end <= LONGEST_HEAD:
        return None
    head = _head_of(data[:end])
    return (head, data[end + 4 :]) if head.status >= 200 and head.length == len(data) - end - 4 else None


def _head_of(data: bytes) -> Head:
    """The head without its Audit-Id, which differs in every answer: the rest is the same in many, and is cached."""
    number = data.find(_AUDIT_ID)
    if number < 0:
        return _parse_head(data)
    rest = data.find(b"\r\n", number + len(_AUDIT_ID))
    return _parse_head(data[:number] + data[rest:] if rest > 0 else data[:number])


@lru_cache(maxsize=64)
def _parse_head(data: bytes) -> Head:
    first, *lines = data.decode("latin-1").split("\r\n")
    status_line = _STATUS_LINE.match(first)
    if status_line is None:
        raise HttpSyntaxError(f"{first[:40]!r} is not the first line of an HTTP/1.1 answer")
    headers: dict[str, str] = {}
    for line in lines:
        key, value = _header(line)
        if key not in headers:
            headers[key] = value
        elif key == "content-length":
            if headers[key] != value:
                raise HttpSyntaxError("the answer has two different lengths")
        else:
            headers[key] = f"{headers[key]}, {value}"
    status, length = int(status_line[2]), _length(int(status_line[2]), headers)
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection if status_line[1] == "1" else "keep-alive" in connection
    return Head(status, headers, keep_alive and length != _UNTIL_CLOSED, length)


def _length(status: int, headers: dict[str, str]) -> int:
    encoding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if status < 200 or status in (204, 304):
        return 0
    if encoding is not None:
        if encoding.lower() != "chunked":
            raise HttpSyntaxError(f"transfer encoding {encoding!r} is not understood")
        return _IN_CHUNKS
    if length is None:
        return _UNTIL_CLOSED
    if not _DIGITS.match(length):
        raise HttpSyntaxError(f"content length {length!r} is not a number")
    return int(length)


@lru_cache(maxsize=64)
def _header(line: str) -> tuple[str, str]:
    """Name and value. Most lines are the same in every answer of a server."""
    name, colon, value = line.partition(":")
    if not colon or not name or name[0] in " \t":
        raise HttpSyntaxError(f"{line[:40]!r} is not a header")
    return name.lower(), value.strip()

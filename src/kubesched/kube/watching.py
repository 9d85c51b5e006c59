"""Lines of a watch from a stream of bytes, as many at a time as there are."""

from __future__ import annotations

from kubesched.kube.http_connection import AnswerStream


class LineSplitter:
    """Whole lines from bytes, however they are cut and however long a line is."""

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
        """What came since the last call, at least one line; none at the end.

        Raises AnswerTimeoutError after too much silence, UnreachableError if the connection broke.
        """
        while data := await self._stream.read(self._silence):
            if lines := self._splitter.feed(data):
                return lines
        return []

    def close(self) -> None:
        """Hang up; a task that waits for lines gets UnreachableError."""
        self._stream.close()

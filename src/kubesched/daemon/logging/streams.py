"""Where lines go: one stream, or errors apart from the rest, which may be collected before they are written."""

from __future__ import annotations

import logging
from typing import TextIO


class BufferedHandler(logging.Handler):
    """Writes lines to a stream, many at once if it has room to collect them."""

    def __init__(self, stream: TextIO, size: int = 0) -> None:
        """`size` is how many characters to collect; 0 writes every line at once."""
        super().__init__()
        self._stream = stream
        self._size = size
        self._lines: list[str] = []
        self._held = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # a value that cannot be shown must not end what wanted to tell of it
            self.handleError(record)
            return
        self._lines.append(f"{line}\n")
        self._held += len(line) + 1
        if self._held >= self._size:
            self.flush()

    def flush(self) -> None:
        """Write what was collected. A stream that nobody reads any more is no reason to fail."""
        self.acquire()
        try:
            lines, self._lines, self._held = self._lines, [], 0
            if lines:
                self._stream.write("".join(lines))
                self._stream.flush()
        except (OSError, ValueError):
            return
        finally:
            self.release()


class BelowErrors(logging.Filter):
    """Lets through what is no error."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR

"""A record as a line: klog's text, and the JSON of Kubernetes components."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

import msgspec

from kubesched.daemon.log.log import VALUES, verbosity_of

_OWN = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", VALUES})
"""What every record has; all else was given by whoever logged."""


def values_of(record: logging.LogRecord) -> dict[str, Any] | None:
    """What a record says besides its message; None if it is plain text."""
    values: dict[str, Any] | None = getattr(record, VALUES, None)
    if values is not None:
        return values
    given = {name: value for name, value in record.__dict__.items() if name not in _OWN}
    return given or None


class TextFormatter(logging.Formatter):
    """`I1115 23:04:05.123456   12345 queue.py:123] "Bound pod" pod="default/web"`."""

    def __init__(self) -> None:
        super().__init__()
        self._process = f"{os.getpid():>7}"
        self._second, self._stamp = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        values = values_of(record)
        message = record.getMessage()
        if values is not None:
            shown = (f"{name}={_text(value)}" for name, value in values.items())
            message = " ".join((_quoted(message), *shown))
        line = f"{self._header(record)} {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    def _header(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._stamp = time.strftime("%m%d %H:%M:%S", time.localtime(second))
        micros = int((record.created - second) * 1e6)
        letter = _LETTERS.get(record.levelno, "I")
        return f"{letter}{self._stamp}.{micros:06} {self._process} {record.filename}:{record.lineno}]"


_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class JsonFormatter(logging.Formatter):
    """`{"ts":1700000000123.456,"caller":"queue.py:123","msg":"Bound pod","v":0,"pod":"default/web"}`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": round(record.created * 1000, 4),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            entry["v"] = verbosity_of(record.levelno)
        for name, value in (values_of(record) or {}).items():
            entry[name] = str(value) if isinstance(value, BaseException) else value
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case None:
            return "null"
        case str():
            text = value
        case list() | tuple() | set() | frozenset() | dict() | msgspec.Struct():
            return msgspec.json.encode(value, enc_hook=str).decode()
        case _:
            text = str(value)
    if "\n" in text:  # klog shows what has several lines as such
        return "<\n" + "".join(f"\t{line}\n" for line in text.splitlines()) + " >"
    return _quoted(text)

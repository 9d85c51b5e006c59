"""Structured logging: a constant message, and values beside it, in the two formats of klog: text and JSON.

    log = Log(__name__)
    log.info("Bound pod", pod=pod.key, node=name)
    log.info("Evaluated nodes", v=4, feasible=feasible)

A message above the verbosity costs a look into a dictionary. Where values are expensive, ask `log.enabled(v)` first.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, TextIO

import msgspec

from kubesched.daemon.flag_values import ModuleLevel
from kubesched.daemon.options import Options

_LEVELS = (logging.INFO, 18, 15, 13, logging.DEBUG, 9, 8, 7, 6, 5, 4)
"""Verbosity 4 is what Kubernetes calls debugging, and so is DEBUG."""

_VERBOSITIES = {level: v for v, level in enumerate(_LEVELS)}


def level_of(verbosity: int) -> int:
    """The level at which a record of this verbosity is made; the higher the verbosity, the lower the level."""
    return _LEVELS[min(verbosity, len(_LEVELS) - 1)]


def verbosity_of(level: int) -> int:
    """The verbosity of records of this level; 0 for warnings and errors."""
    verbosity = _VERBOSITIES.get(level)
    if verbosity is not None:
        return verbosity
    return next((v for v, lower in enumerate(_LEVELS) if level >= lower), len(_LEVELS) - 1)


VALUES = "structured_values"
"""The attribute of a record that has its values."""

_SELF = 2
"""The stack level of the caller: one further up than where the standard library looks."""


class Log:
    """A logger of the standard library with values."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def enabled(self, v: int) -> bool:
        """Whether a message of this verbosity would be written."""
        return self._logger.isEnabledFor(level_of(v))

    def info(self, message: str, /, *, v: int = 0, **values: Any) -> None:
        level = level_of(v)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, extra={VALUES: values}, stacklevel=_SELF)

    def text(self, message: str, /, *, v: int = 0) -> None:
        """Log a line without values, such as kube-scheduler's lines that begin with FLAG."""
        level = level_of(v)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, stacklevel=_SELF)

    def warning(self, message: str, /, **values: Any) -> None:
        self._logger.warning(message, extra={VALUES: values}, stacklevel=_SELF)

    def error(
        self, message: str, /, *, err: BaseException | str | None = None, with_stack: bool = False, **values: Any
    ) -> None:
        """Something went wrong; `err` comes before all other values."""
        all_values = values if err is None else {"err": err, **values}
        exception = err if with_stack and isinstance(err, BaseException) else None
        self._logger.error(message, extra={VALUES: all_values}, stacklevel=_SELF, exc_info=exception)


_OWN = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", VALUES})
"""Attributes that every record has; all others are values."""


def values_of(record: logging.LogRecord) -> dict[str, Any] | None:
    """The values of a record; None if it is plain text."""
    values: dict[str, Any] | None = getattr(record, VALUES, None)
    if values is not None:
        return values
    return {name: value for name, value in record.__dict__.items() if name not in _OWN} or None


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
            message = " ".join((_quote(message), *shown))
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


def _quote(text: str) -> str:
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
    if "\n" in text:  # klog writes several lines as such
        return "<\n" + "".join(f"\t{line}\n" for line in text.splitlines()) + " >"
    return _quote(text)


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
        except Exception:  # a value that cannot be formatted must not end the caller
            self.handleError(record)
            return
        self._lines.append(f"{line}\n")
        self._held += len(line) + 1
        if self._held >= self._size:
            self.flush()

    def flush(self) -> None:
        """Write what was collected. A stream that is closed at its other end is no reason to fail."""
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


OURS = "kubesched"
"""The logger above all of kubesched's. Other loggers show warnings and errors."""


class Logging:
    """The handlers and the verbosity of the process. At its end the standard library flushes the handlers."""

    def __init__(self, handlers: Sequence[logging.Handler], verbosity: int, modules: Sequence[ModuleLevel]) -> None:
        self._handlers = handlers
        self._modules = tuple(modules)
        root = logging.getLogger()
        self._replaced = root.handlers[:]
        root.handlers[:] = handlers
        root.setLevel(logging.WARNING)
        self.set_verbosity(verbosity)

    def set_verbosity(self, verbosity: int) -> None:
        """Log up to this verbosity from now on, except in files that --vmodule names."""
        logging.getLogger(OURS).setLevel(level_of(verbosity))
        for name in list(logging.root.manager.loggerDict):
            if name.startswith(f"{OURS}.") and (own := self._own_verbosity(name)) is not None:
                logging.getLogger(name).setLevel(level_of(own))

    def flush(self) -> None:
        for handler in self._handlers:
            handler.flush()

    async def keep_flushing(self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Write what was collected every so often, for ever."""
        while True:
            await sleep(seconds)
            self.flush()

    def stop(self) -> None:
        """Write what is left, and leave logging as it was before."""
        self.flush()
        logging.getLogger().handlers[:] = self._replaced
        for name in [OURS, *logging.root.manager.loggerDict]:
            if name == OURS or name.startswith(f"{OURS}."):
                logging.getLogger(name).setLevel(logging.NOTSET)

    def _own_verbosity(self, name: str) -> int | None:
        """The first pattern that matches decides. A pattern with a slash is for paths, others are for file names."""
        path = name.replace(".", "/")
        for module in self._modules:
            pattern = module.pattern.removesuffix(".py")
            if fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern):
                return module.level
        return None


def start_logging(options: Options, *, out: TextIO | None = None, err: TextIO | None = None) -> Logging:
    """Log as the options say, to standard error, or to both streams if they are to be split."""
    is_json = options.logging_format == "json"
    split = options.log_json_split_stream if is_json else options.log_text_split_stream
    size = options.log_json_info_buffer_size if is_json else options.log_text_info_buffer_size
    handlers = [BufferedHandler(err or sys.stderr)]
    if split:
        handlers[0].setLevel(logging.ERROR)
        handlers.append(BufferedHandler(out or sys.stdout, size))
        handlers[1].addFilter(lambda record: record.levelno < logging.ERROR)
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    return Logging(handlers, options.v, options.vmodule)

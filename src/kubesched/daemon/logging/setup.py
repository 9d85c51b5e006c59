"""Logging as a command line asks for it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import TextIO

from kubesched.daemon.flags.values import ModuleLevel
from kubesched.daemon.logging.formats import JsonFormatter, TextFormatter
from kubesched.daemon.logging.levels import level_of
from kubesched.daemon.logging.streams import BelowErrors, BufferedHandler
from kubesched.daemon.options import Options

OURS = "kubesched"
"""The logger above all of ours. What others log is shown from warnings on."""


class Logging:
    """Logging at work. The standard library writes what is left when the process ends."""

    def __init__(self, handlers: Sequence[logging.Handler], verbosity: int, modules: Sequence[ModuleLevel]) -> None:
        self._handlers = handlers
        self._modules = tuple(modules)
        root = logging.getLogger()
        self._replaced = root.handlers[:]
        root.handlers[:] = handlers
        root.setLevel(logging.WARNING)
        self.set_verbosity(verbosity)

    def set_verbosity(self, verbosity: int) -> None:
        """How much is logged from now on, but for files that have a verbosity of their own."""
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
        """The first pattern that fits decides. One with a slash is about the path, others about the file's name."""
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
        handlers[1].addFilter(BelowErrors())
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    return Logging(handlers, options.v, options.vmodule)

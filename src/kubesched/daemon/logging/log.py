"""How this program says things: a message that is always the same, and what differs as values.

    log = Log(__name__)
    log.info("Bound pod", pod=pod.key, node=name)
    log.info("Evaluated nodes", v=4, feasible=found)

A message above the verbosity costs a look into a dictionary. Where values are dear, ask `log.enabled(v)` first.
"""

from __future__ import annotations

import logging
from typing import Any

from kubesched.daemon.logging.levels import level_of

VALUES = "structured_values"
"""The attribute of a record that has its values."""

_SELF = 2
"""Who calls is one step further up than where the standard library looks."""


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
        """A line that is no message with values, for those that people know as they are."""
        level = level_of(v)
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, stacklevel=_SELF)

    def warning(self, message: str, /, **values: Any) -> None:
        self._logger.warning(message, extra={VALUES: values}, stacklevel=_SELF)

    def error(self, message: str, /, *, err: BaseException | str | None = None, **values: Any) -> None:
        """Something went wrong; `err` comes before all other values."""
        told = values if err is None else {"err": err, **values}
        self._logger.error(message, extra={VALUES: told}, stacklevel=_SELF)

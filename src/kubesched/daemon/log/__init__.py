"""How this program logs: a message that is always the same, and what differs as values; in klog's two shapes.

    log = Log(__name__)
    log.info("Bound pod", pod=pod.key, node=name)
    log.info("Evaluated nodes", v=4, feasible=found)

A message above the verbosity costs a look into a dictionary. Where values are dear, ask `log.enabled(v)` first.
"""

from __future__ import annotations

import logging
from typing import Any

_LEVELS = (logging.INFO, 18, 15, 13, logging.DEBUG, 9, 8, 7, 6, 5, 4)
"""Verbosity 4 is what Kubernetes calls debugging, and so is DEBUG."""

_VERBOSITIES = {level: v for v, level in enumerate(_LEVELS)}


def level_of(verbosity: int) -> int:
    """The level at which a record of this verbosity is made; the higher the verbosity, the lower the level."""
    return _LEVELS[min(verbosity, len(_LEVELS) - 1)]


def verbosity_of(level: int) -> int:
    """The opposite; 0 for warnings and errors."""
    found = _VERBOSITIES.get(level)
    if found is not None:
        return found
    return next((v for v, known in enumerate(_LEVELS) if level >= known), len(_LEVELS) - 1)


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

    def error(
        self, message: str, /, *, err: BaseException | str | None = None, with_stack: bool = False, **values: Any
    ) -> None:
        """Something went wrong; `err` comes before all other values."""
        given = values if err is None else {"err": err, **values}
        shown = err if with_stack and isinstance(err, BaseException) else None
        self._logger.error(message, extra={VALUES: given}, stacklevel=_SELF, exc_info=shown)

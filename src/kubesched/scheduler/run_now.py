"""Runs coroutines in virtual time, where they have nothing to wait for."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any


class StillWaitingError(RuntimeError):
    """A coroutine waits for something that virtual time does not have."""


def run_now(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, at once."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise StillWaitingError("a plugin waits for something outside of virtual time")

"""How often a long-lived process looks for garbage that reference counting leaves behind: seldom.

A collection walks everything that was made since the last one, and now and then everything there is. Nearly all that
a scheduler or an API server makes is freed by its reference count, so most of that walking finds nothing. With
Python's own thresholds, a burst of 10,000 bindings took about a quarter more CPU time.
"""

from __future__ import annotations

import gc

_YOUNG = 50_000
"""New containers before a collection, in the place of 700: a few milliseconds of work, tens of megabytes at most."""


def collect_seldom() -> None:
    """Call it once, when the process starts."""
    gc.set_threshold(_YOUNG, 5, 5)


def freeze() -> None:
    """Call it when everything that stays has been read: it is never walked again, and still freed by its count."""
    gc.collect()
    gc.freeze()

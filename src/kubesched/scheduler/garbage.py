"""Memory of a long-lived process: it collects garbage seldom, and maps large buffers as pages of their own.

A collection walks all objects made since the last one, and now and then all there are. Nearly all that a scheduler or
an API server makes is freed by its reference count, so most collections find nothing. With Python's own thresholds, a
burst of 10,000 bindings took about a quarter more CPU time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc

_YOUNG = 50_000
"""New containers before a collection, instead of 700: a few milliseconds of work, tens of megabytes at most."""

LARGE = 256 << 10
"""Bytes. Smaller buffers still come from the heap."""
_LARGEST_COLUMNS = 16 << 20
_BYTES_PER_NODE = 16
"""In an array of two columns of whole numbers: cpu and memory."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def collect_seldom() -> None:
    """Call it once, when the process starts."""
    gc.set_threshold(_YOUNG, 5, 5)


def freeze() -> None:
    """Call it when all that stays has been read: it is never walked again, and still freed by its reference count."""
    gc.collect()
    gc.freeze()


def map_large_buffers() -> None:
    """Call it once, when the process starts. Where the C library is not glibc, nothing changes.

    uvloop has a buffer of 256 kB for every connection with TLS, of which most is never touched. By default malloc takes
    such buffers from its heap once the first of them was freed. Then small objects settle in the holes that closed
    connections leave, new buffers begin beyond them, and a process that loses its connections again and again grows for
    a long time: docs/reliability.md has the figures.
    """
    _mallopt(_M_MMAP_THRESHOLD, LARGE)


def keep_columns(nodes: int) -> None:
    """Call it when it is known how many nodes there are. Where columns are small, nothing changes.

    Columns of very many nodes are as large as those buffers, and some are made for every decision. Getting their pages
    from the system each time takes three to eight times as long as deciding does. So there both come from the heap,
    and it keeps what is freed.
    """
    if nodes * _BYTES_PER_NODE >= LARGE:
        _mallopt(_M_MMAP_THRESHOLD, _LARGEST_COLUMNS)
        _mallopt(_M_TRIM_THRESHOLD, 4 * _LARGEST_COLUMNS)


def _mallopt(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(option, value)

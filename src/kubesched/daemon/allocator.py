"""glibc's malloc, told to give large buffers pages of their own, which go back to the system when they are freed.

uvloop has a buffer of 256 kB for every connection with TLS, of which most is never touched. By default malloc takes
such buffers from its heap once the first of them was freed. Then small objects settle in the holes that closed
connections leave, new buffers begin beyond them, and a process that loses its connections again and again grows for a
long time: docs/reliability.md has the figures.
"""

from __future__ import annotations

import ctypes

LARGE = 256 << 10
"""Bytes. Columns of 32,000 nodes and more are that large, too; smaller ones are as fast to get as ever."""
_M_MMAP_THRESHOLD = -3  # of malloc.h


def map_large_buffers() -> None:
    """Call it once, when the process starts. Where the C library is another one, nothing changes."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, LARGE)

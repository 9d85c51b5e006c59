"""Large buffers have pages of their own, also after the first was freed; not where columns are as large."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from kubesched.scheduler.garbage import LARGE, keep_columns, map_large_buffers

_MOST_HOLES = 400
"""In the heap of this process, large enough for a buffer: those are filled first."""


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")] + [
        (f"other{n}", ctypes.c_size_t) for n in range(5)
    ]


@pytest.fixture
def libc() -> Iterator[Any]:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip(f"mallinfo2 is glibc's, from 2.33 on; not there on {sys.platform}")
    libc.mallinfo2.restype = Mallinfo
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    map_large_buffers()
    yield libc
    map_large_buffers()


def test_large_buffers_are_mapped_although_one_of_them_was_freed(libc: Any) -> None:
    """malloc's own rule is to map none of that size any more from then on."""
    held = []

    def mapped_by_one_more() -> int:
        before = libc.mallinfo2().hblks
        held.append(libc.malloc(LARGE))
        return int(libc.mallinfo2().hblks - before)

    try:
        holes = sum(1 for _ in takewhile(lambda _: not mapped_by_one_more(), range(_MOST_HOLES)))
        assert holes < _MOST_HOLES, "none was mapped"
        libc.free(held.pop())
        assert [mapped_by_one_more() for _ in range(10)] == [1] * 10
    finally:
        for buffer in held:
            libc.free(buffer)


@pytest.mark.parametrize(("nodes", "is_mapped"), [(5000, True), (130_000, False)])
def test_columns_of_very_many_nodes_come_from_the_heap(libc: Any, nodes: int, is_mapped: bool) -> None:
    keep_columns(nodes)
    before, columns = libc.mallinfo2().hblks, list[int]()
    try:
        while libc.mallinfo2().hblks == before and len(columns) < 50:  # more than the heap has holes of that size
            columns.append(libc.malloc(8 << 20))
        assert (libc.mallinfo2().hblks > before) == is_mapped
    finally:
        for column in columns:
            libc.free(column)

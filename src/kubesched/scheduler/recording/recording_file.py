"""The file that a recording goes to. What was recorded there before is kept: it may be what led to a restart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import IO


def open_recording(path: str, on_kept: Callable[[Path], None]) -> IO[str]:
    """An empty file to write to. If there is one with anything in it, that one is moved aside, and its new name told.

    Raises OSError. A pipe or a device is written to as it is.
    """
    file = Path(path)
    if file.is_file() and file.stat().st_size > 0:
        kept = next(other for i in count(1) if not (other := Path(f"{path}.{i}")).exists())
        file.rename(kept)
        on_kept(kept)
    return file.open("w", encoding="utf-8")

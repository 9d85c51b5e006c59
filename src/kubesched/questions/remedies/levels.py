"""Changes that have a degree: the mildest that will do."""

from __future__ import annotations

from collections.abc import Callable


class Levels:
    """A change of which less helps less: the least that does, or the most that is harmless, is found by halving."""

    def __init__(self, fits: Callable[[int], bool]) -> None:
        self._fits = fits

    def greatest_of(self, levels: list[int]) -> int:
        """The greatest of these that fits; 0 if none does."""
        low, high = 0, len(levels)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._fits(levels[middle]) else (low, middle)
        return levels[low - 1] if low else 0

    def greatest(self, low: int, high: int) -> int:
        """The greatest from low, which fits, to high."""
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle - 1)
        return low

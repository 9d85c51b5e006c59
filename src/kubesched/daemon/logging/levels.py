"""klog's verbosity told in the levels of the standard library, which then decides quickly what is worth a record."""

from __future__ import annotations

import logging

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

"""Durations: seconds inside, Go's notation (`1m30s`) outside."""

from __future__ import annotations

import json
import re
from typing import Any

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu, which Go takes as well
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]+)")
_LIMIT = 2**63
_LONGEST = 1000
"""Characters. Python reads no number of thousands of digits."""


class Duration(float):
    """A number of seconds that reads and prints as Go's durations do."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: Any) -> Duration:
        """The duration in a string; ValueError says what was expected."""
        nanoseconds = parse_nanoseconds(value) if isinstance(value, str) else None
        if nanoseconds is None:
            raise ValueError(f'expected a duration such as "10s" or "1m30s", got {json.dumps(value)}')
        return cls(nanoseconds / 10**9)

    def __str__(self) -> str:
        total = round(self * 10**9)
        sign = "-" if total < 0 else ""
        total = abs(total)
        if total == 0:
            return "0s"
        if total < 10**9:
            unit = next(unit for unit in ("ms", "µs", "ns") if total >= _NANOSECONDS[unit])
            return f"{sign}{_decimal(total, _NANOSECONDS[unit])}{unit}"
        minutes, rest = divmod(total, 60 * 10**9)
        hours, minutes = divmod(minutes, 60)
        shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        return f"{sign}{shown}{_decimal(rest, 10**9)}s"


def parse_nanoseconds(text: str) -> int | None:
    """Parse a duration as Go's time.ParseDuration does; None if the text is none."""
    if len(text) > _LONGEST:
        return None
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return 0
    total, position = 0, 0
    while position < len(unsigned):
        part = _PART.match(unsigned, position)
        if part is None or part["unit"] not in _NANOSECONDS or not (part["whole"] or part["fraction"]):
            return None
        unit, fraction = _NANOSECONDS[part["unit"]], part["fraction"] or ""
        total += int(part["whole"] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = part.end()
    signed = -total if text.startswith("-") else total
    return signed if unsigned and -_LIMIT <= signed < _LIMIT else None


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)

"""How long ago, as kubectl writes it: two units at most, the coarser the older."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """A length of time: 5s, 2m10s, 3h, 4d12h, 2y30d, ..."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 3 * _HOUR:
        return _two(whole, _MINUTE, "m", 1, "s", fine_below=10)
    if whole < 2 * _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "m", fine_below=8)
    if whole < 2 * _YEAR:
        return _two(whole, _DAY, "d", _HOUR, "h", fine_below=8)
    return _two(whole, _YEAR, "y", _DAY, "d", fine_below=8)


def _two(seconds: int, big: int, big_unit: str, small: int, small_unit: str, *, fine_below: int) -> str:
    """In the bigger unit; the rest in the smaller one only where it still matters."""
    count, rest = divmod(seconds, big)
    more = rest // small
    return f"{count}{big_unit}{more}{small_unit}" if more and count < fine_below else f"{count}{big_unit}"


def moment(timestamp: Any) -> datetime | None:
    """The time that a timestamp of the API says, if it says one."""
    if not isinstance(timestamp, str):
        return None
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def since(timestamp: Any, now: datetime) -> str:
    """How long ago a timestamp of the API was."""
    then = moment(timestamp)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())

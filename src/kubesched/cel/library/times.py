"""The parts of points in time and of durations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import method
from kubesched.cel.values import Duration, Timestamp

_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")

_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_SPANS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}


def _moment(timestamp: Timestamp) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=timestamp.nanoseconds // 1000)


def _moment_in(timestamp: Timestamp, zone: str) -> datetime:
    try:
        if match := _OFFSET.fullmatch(zone):
            minutes = int(match[2]) * 60 + int(match[3])
            return _moment(timestamp) + timedelta(minutes=-minutes if match[1] == "-" else minutes)
        return _moment(timestamp).replace(tzinfo=UTC).astimezone(ZoneInfo(zone or "UTC"))
    except (KeyError, ValueError, OSError):
        raise AbsorbableError(f"unknown time zone {zone}") from None
    except OverflowError:
        raise AbsorbableError("timestamp overflow") from None


def _register(name: str, part: Callable[[datetime], int]) -> None:
    @method(f"timestamp.{name}() -> int")
    def get(timestamp: Timestamp) -> int:
        return part(_moment(timestamp))

    @method(f"timestamp.{name}(string) -> int")
    def get_in(timestamp: Timestamp, zone: str) -> int:
        return part(_moment_in(timestamp, zone))


def _register_span(name: str, unit: int) -> None:
    @method(f"duration.{name}() -> int")
    def get(duration: Duration) -> int:
        whole = abs(duration.nanoseconds) // unit
        return whole if duration.nanoseconds >= 0 else -whole


for _name, _part in _PARTS.items():
    _register(_name, _part)
for _name, _unit in _SPANS.items():
    _register_span(_name, _unit)

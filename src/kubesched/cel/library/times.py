"""Durations and points in time: how they are read and shown, and their parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from kubesched.api.duration import parse_nanoseconds
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, functions, method, methods
from kubesched.cel.library.conversions import unreadable
from kubesched.cel.operators import checked_timestamp
from kubesched.cel.values import CelDuration, Timestamp

_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
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


functions(
    {
        "int(duration) -> int": lambda duration: duration.nanoseconds,
        "int(timestamp) -> int": lambda timestamp: timestamp.nanoseconds // 10**9,
        "string(duration) -> string": str,
        "string(timestamp) -> string": str,
        "timestamp(int) -> timestamp": lambda seconds: checked_timestamp(seconds * 10**9),
    }
)


@function("duration(string) -> duration")
def to_duration(text: str) -> CelDuration:
    """Read something like 1h30m."""
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None:
        raise unreadable("google.protobuf.Duration")
    return CelDuration(nanoseconds)


@function("timestamp(string) -> timestamp")
def to_timestamp(text: str) -> Timestamp:
    """Read RFC 3339."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise unreadable("google.protobuf.Timestamp")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise unreadable("google.protobuf.Timestamp") from None
    nanoseconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 10**9
    nanoseconds += int((match[7] or "").ljust(9, "0")[:9])
    if match[8]:
        if int(match[9]) > 23 or int(match[10]) > 59:
            raise unreadable("google.protobuf.Timestamp")
        ahead = (int(match[9]) * 60 + int(match[10])) * 60 * 10**9
        nanoseconds -= ahead if match[8] == "+" else -ahead
    return checked_timestamp(nanoseconds)


def _moment(timestamp: Timestamp, zone: str) -> datetime:
    utc = datetime(1970, 1, 1) + timedelta(microseconds=timestamp.nanoseconds // 1000)
    try:
        if match := _OFFSET.fullmatch(zone):
            minutes = int(match[2]) * 60 + int(match[3])
            return utc + timedelta(minutes=-minutes if match[1] == "-" else minutes)
        return utc if zone in ("", "UTC") else utc.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    except (KeyError, ValueError, OSError):
        raise AbsorbableError(f"unknown time zone {zone}") from None
    except OverflowError:
        raise AbsorbableError("timestamp overflow") from None


def _part(of: Callable[[datetime], int], timestamp: Timestamp, zone: str = "UTC") -> int:
    return of(_moment(timestamp, zone))


def _whole(unit: int, duration: CelDuration) -> int:
    count = abs(duration.nanoseconds) // unit
    return count if duration.nanoseconds >= 0 else -count


for _name, _of in _PARTS.items():
    method(f"timestamp.{_name}() -> int", f"timestamp.{_name}(string) -> int")(partial(_part, _of))
methods({f"duration.{name}() -> int": partial(_whole, unit) for name, unit in _SPANS.items()})

"""Schedules of CronJobs ("*/5 9-17 * * mon-fri", "@hourly"): reads them, and finds the next time of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from kubesched.api.duration import parse_nanoseconds

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: i for i, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 6, {name: i for i, name in enumerate(_WEEKDAYS)}),
)
_PART = re.compile(r"(?:(?P<all>[*?])|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d{1,9}))?")
_DAYS_AHEAD = 5 * 366
"""A schedule without a day in so long (the 30th of February) has none at all."""


class CronError(ValueError):
    """The text is no schedule."""


class Schedule(NamedTuple):
    """The times at which a CronJob runs."""

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()
    either_day: bool = False
    """Whether a day needs to be only one of `days` and `weekdays`: so it is if the schedule restricts both."""
    every: int = 0
    """Seconds between two times; then all else is empty."""

    def after(self, moment: float, zone: tzinfo) -> float | None:
        """The first time after this one, in seconds since the epoch; None if there is none."""
        if self.every:
            return float(int(moment) + self.every)
        start = datetime.fromtimestamp(moment, zone).replace(second=0, microsecond=0, tzinfo=None)
        for day in range(_DAYS_AHEAD):
            date = (start + timedelta(days=day)).replace(hour=0, minute=0)
            if self._is_on(date):
                for time in self._times(date):
                    # Times in an hour that the clock skips in spring are shifted.
                    timestamp = time.replace(tzinfo=zone).timestamp()
                    if timestamp > moment:
                        return timestamp
        return None

    def _is_on(self, date: datetime) -> bool:
        if date.month not in self.months:
            return False
        by_day, by_weekday = date.day in self.days, date.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.either_day else by_day and by_weekday

    def _times(self, date: datetime) -> Iterator[datetime]:
        for hour in self.hours:
            for minute in self.minutes:
                yield date.replace(hour=hour, minute=minute)


def parse_schedule(text: str) -> Schedule:
    """Read a schedule in the standard form: five fields, or a word for one."""
    text = text.strip()
    if text.startswith("@every "):
        return Schedule(every=_every(text.removeprefix("@every ").strip()))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise CronError(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (_field(field, *rule) for field, rule in zip(fields, _FIELDS))
    both_restricted = not any(field.startswith(("*", "?")) for field in (fields[2], fields[4]))
    return Schedule(minutes, hours, days, months, weekdays, both_restricted)


def _every(text: str) -> int:
    """The seconds of `@every`: whole ones, and at least one."""
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None:
        raise CronError(f"failed to parse duration @every {text}")
    return max(1, nanoseconds // 10**9)


def _field(text: str, name: str, low: int, high: int, numbers: dict[str, int]) -> tuple[int, ...]:
    values: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise CronError(f"failed to parse {name} from {part!r}")
        first = low if match["all"] else _number(match["first"], name, numbers)
        last = first if not match["all"] else high
        if match["last"]:
            last = _number(match["last"], name, numbers)
        elif match["step"]:
            last = high
        step = int(match["step"] or 1)
        if not (low <= first <= last <= high and step):
            raise CronError(f"{name} {part!r} is not within {low} and {high}")
        values.update(range(first, last + 1, step))
    return tuple(sorted(values))


def _number(text: str, name: str, numbers: dict[str, int]) -> int:
    if text.lower() in numbers:
        return numbers[text.lower()]
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise CronError(f"failed to parse {name} from {text!r}")
    return int(text)

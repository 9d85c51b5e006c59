from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.cron import CronError, parse_schedule

BERLIN = ZoneInfo("Europe/Berlin")


def after(schedule: str, moment: str, zone: ZoneInfo | None = None) -> str | None:
    place = zone or UTC
    found = parse_schedule(schedule).after(datetime.fromisoformat(moment).replace(tzinfo=place).timestamp(), place)
    return None if found is None else datetime.fromtimestamp(found, place).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("*/15 * * * *", "2026-11-16 14:45"),
        ("0 3 * * *", "2026-11-17 03:00"),
        ("30 14 16 11 *", "2027-11-16 14:30"),
        ("0 9-17/4 * * mon-fri", "2026-11-16 17:00"),
        ("0 0 1 * sun", "2026-11-22 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("@hourly", "2026-11-16 15:00"),
        ("@weekly", "2026-11-22 00:00"),
        ("@every 90m", "2026-11-16 16:00"),
        ("@every 1.5h", "2026-11-16 16:00"),
        ("@every 60999ms", "2026-11-16 14:31"),
        ("0 0 30 2 *", None),
    ],
)
def test_the_next_time_of_a_schedule(schedule: str, expected: str | None) -> None:
    assert after(schedule, "2026-11-16 14:30") == expected


def test_a_schedule_is_read_in_its_time_zone_whatever_the_season() -> None:
    assert after("30 8 * * *", "2026-03-28 09:00", BERLIN) == "2026-03-29 08:30"
    assert after("30 8 * * *", "2026-10-24 09:00", BERLIN) == "2026-10-25 08:30"


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "5-1 * * * *", "*/0 * * * *", "@often", "@every x", "a * * * *"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(CronError):
        parse_schedule(text)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.just("*") | number.map(str) | span | st.integers(1, 40).map(lambda step: f"*/{step}")


@given(
    st.tuples(_field(0, 59), _field(0, 23), _field(1, 28), st.just("*"), _field(0, 6)),
    st.integers(0, 400_000_000),
)
def test_the_next_time_is_the_first_minute_that_every_field_allows(fields: tuple[str, ...], moment: int) -> None:
    schedule = parse_schedule(" ".join(fields))
    expected = datetime.fromtimestamp(moment, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    allowed = [parse_schedule(" ".join("*" if i != j else part for j in range(5))) for i, part in enumerate(fields)]
    for _ in range(70):  # days, since every month has the days that are asked for
        by_day = expected.day in allowed[2].days
        by_weekday = expected.isoweekday() % 7 in allowed[4].weekdays
        restricted = "*" not in fields[2] and "*" not in fields[4]
        if by_day or by_weekday if restricted else by_day and by_weekday:
            times = [(hour, minute) for hour in allowed[1].hours for minute in allowed[0].minutes]
            later = [time for time in times if time >= (expected.hour, expected.minute)]
            if later:
                expected = expected.replace(hour=min(later)[0], minute=min(later)[1])
                break
        expected = expected.replace(hour=0, minute=0) + timedelta(days=1)
    else:
        return
    assert schedule.after(moment, UTC) == expected.timestamp()

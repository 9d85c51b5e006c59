"""CronJobs: when a Job is due, which Job that is, and which of the old ones may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kubesched.api.cron import Schedule, parse_schedule
from kubesched.api.kinds import CRON_JOBS, Object
from kubesched.controllers.pod_templates import owner_reference

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY = 100


class Due(NamedTuple):
    """What a schedule says at some moment."""

    last: float | None
    """The latest time that has come since the schedule was last followed; None if none has."""
    next: float | None
    missed: int
    """How many times have come; beyond a hundred they are not counted."""


def zone_of(cron_job: Object) -> tzinfo:
    name = cron_job["spec"].get("timeZone")
    return ZoneInfo(name) if name else UTC


def due(cron_job: Object, since: float, now: float) -> Due:
    """Which time of the schedule has come after `since`."""
    schedule, zone = parse_schedule(cron_job["spec"]["schedule"]), zone_of(cron_job)
    last, missed, following = None, 0, schedule.after(since, zone)
    while following is not None and following <= now:
        last, missed = following, missed + 1
        if missed > _MANY:
            last, following = _latest(schedule, zone, following, now)
            break
        following = schedule.after(following, zone)
    return Due(last, following, missed)


def _latest(schedule: Schedule, zone: tzinfo, start: float, now: float) -> tuple[float, float | None]:
    """The latest time up to now, and the next, found without going through all in between: by halves."""
    low, high = start, now
    while high - low > 1:
        middle = (low + high) / 2
        found = schedule.after(middle, zone)
        low, high = (found, high) if found is not None and found <= now else (low, middle)
    return low, schedule.after(now, zone)


def scheduled_job(cron_job: Object, when: float, spell: Callable[[float], str]) -> Object:
    """The Job of a time; its name says which, so that no time has two."""
    template = cron_job["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    annotations = {**(given.get("annotations") or {}), _SCHEDULED: spell(when)}
    metadata = {
        "name": f"{cron_job['metadata']['name']}-{int(when) // 60}",
        "labels": dict(given.get("labels") or {}),
        "annotations": annotations,
        "ownerReferences": [owner_reference(CRON_JOBS, cron_job)],
    }
    return {"metadata": metadata, "spec": template["spec"]}


def beyond_history(finished: Sequence[Object], limit: int | None) -> list[Object]:
    """The oldest of these Jobs that are more than should be kept."""
    if limit is None:
        return []
    by_age = sorted(finished, key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"]))
    return by_age[: max(0, len(by_age) - limit)]

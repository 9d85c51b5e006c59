"""Jobs and CronJobs: the pods that a Job wants, and when a CronJob is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kubesched.api.cron import Schedule, parse_schedule
from kubesched.api.kinds import CRON_JOBS, Object
from kubesched.controllers.pod_templates import owner_reference, pod_from

INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = {"name": "JOB_COMPLETION_INDEX"}


def wanted_pods(job: Object, *, active: int) -> int:
    """How many pods should be active now: as many as may be side by side, and no more than are left to succeed.

    A Job without `completions` is a work queue: after its first success no pod is created any more.
    """
    spec, succeeded = job["spec"], int((job.get("status") or {}).get("succeeded", 0))
    parallelism = _or_one(spec.get("parallelism"))
    if spec.get("completions") is None:
        return active if succeeded else parallelism
    return max(0, min(parallelism, int(spec["completions"]) - succeeded))


def remaining_pods(job: Object) -> int:
    """How many pods have to succeed from now on."""
    spec, succeeded = job["spec"], int((job.get("status") or {}).get("succeeded", 0))
    if spec.get("completions") is None:
        return 0 if succeeded else _or_one(spec.get("parallelism"))
    return max(0, int(spec["completions"]) - succeeded)


def new_pods(job: Object, taken: Iterable[int | None]) -> Iterator[Object]:
    """The pods to create next, without end; of an Indexed Job only those of indexes that are neither done nor taken."""
    if job["spec"].get("completionMode") != "Indexed":
        while True:
            yield pod_from(job["spec"]["template"], prefix=job["metadata"]["name"])
    done = {*taken, *Indexes.read((job.get("status") or {}).get("completedIndexes", ""))}
    for index in range(_or_one(job["spec"].get("completions"))):
        if index not in done:
            yield indexed_pod(job, index)


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


class Indexes:
    """A set of indexes that reads and prints as Kubernetes writes it."""

    def __init__(self, indexes: Iterable[int] = ()) -> None:
        self._indexes = set(indexes)

    @classmethod
    def read(cls, text: str) -> Indexes:
        indexes: set[int] = set()
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            indexes.update(range(int(first), int(last or first) + 1))
        return cls(indexes)

    def add(self, indexes: Iterable[int]) -> None:
        self._indexes.update(indexes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)

    def __str__(self) -> str:
        runs: list[tuple[int, int]] = []
        for index in sorted(self._indexes):
            if runs and runs[-1][1] == index - 1:
                runs[-1] = (runs[-1][0], index)
            else:
                runs.append((index, index))
        # Two neighbours are listed, three and more are a range.
        parts = ((str(a),) if a == b else (str(a), str(b)) if b == a + 1 else (f"{a}-{b}",) for a, b in runs)
        return ",".join(part for run_parts in parts for part in run_parts)


def index_of(pod: Object) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdigit() else None


def indexed_pod(job: Object, index: int) -> Object:
    """The pod of one index: it knows its index by annotation, label, host name and environment."""
    name = job["metadata"]["name"]
    pod = pod_from(job["spec"]["template"], prefix=f"{name}-{index}")
    metadata, spec = pod["metadata"], pod["spec"]
    for key in ("annotations", "labels"):
        metadata[key] = {**(metadata.get(key) or {}), INDEX: str(index)}
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_variable(container, source) for container in spec[kind]]
    return pod


def _with_variable(container: Object, source: Object) -> Object:
    others = [variable for variable in container.get("env") or () if variable.get("name") != _VARIABLE["name"]]
    return {**container, "env": [*others, {**_VARIABLE, "valueFrom": source}]}


_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY = 100


class DueTimes(NamedTuple):
    """What a schedule says at some moment."""

    last: float | None
    """The latest time that has come since the schedule was last followed; None if none has."""
    next: float | None
    missed: int
    """How many times have come; beyond a hundred they are not counted."""


def zone_of(cron_job: Object) -> tzinfo:
    name = cron_job["spec"].get("timeZone")
    return ZoneInfo(name) if name else UTC


def due_times(cron_job: Object, since: float, now: float) -> DueTimes:
    """Which time of the schedule has come after `since`."""
    schedule, zone = parse_schedule(cron_job["spec"]["schedule"]), zone_of(cron_job)
    last, missed, following = None, 0, schedule.after(since, zone)
    while following is not None and following <= now:
        last, missed = following, missed + 1
        if missed > _MANY:
            last, following = _latest(schedule, zone, following, now)
            break
        following = schedule.after(following, zone)
    return DueTimes(last, following, missed)


def _latest(schedule: Schedule, zone: tzinfo, start: float, now: float) -> tuple[float, float | None]:
    """The latest time of the schedule up to now, and the next one, by bisection."""
    low, high = start, now
    while high - low > 1:
        middle = (low + high) / 2
        following = schedule.after(middle, zone)
        low, high = (following, high) if following is not None and following <= now else (low, middle)
    return low, schedule.after(now, zone)


def scheduled_job(cron_job: Object, when: float, spell: Callable[[float], str]) -> Object:
    """The Job of a time; its name says which, so that no time has two."""
    template = cron_job["spec"]["jobTemplate"]
    template_metadata = template.get("metadata") or {}
    annotations = {**(template_metadata.get("annotations") or {}), _SCHEDULED: spell(when)}
    metadata = {
        "name": f"{cron_job['metadata']['name']}-{int(when) // 60}",
        "labels": dict(template_metadata.get("labels") or {}),
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

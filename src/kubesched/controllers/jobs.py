"""Jobs and CronJobs: the pods that a Job wants, when a CronJob is due, and Jobs that need all of their pods or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kubesched.api.cron import Schedule, parse_schedule
from kubesched.api.kinds import CRON_JOBS, JOBS, POD_GROUPS, WORKLOADS, Object, Resource
from kubesched.controllers.pod_templates import NAME_ALPHABET, owner_reference, pod_from

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
        return ",".join(part for each in parts for part in each)


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
    others = [each for each in container.get("env") or () if each.get("name") != _VARIABLE["name"]]
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


# -- the Workload and the PodGroup of a Job that needs all of its pods or none ----------------------------------------


_LONGEST_NAME = 253


@dataclass(frozen=True)
class JobGroups:
    """Finds or makes the Workload and the PodGroup of a Job, with the functions given here for reading and creating."""

    workloads: Callable[[Object], Sequence[Object]]
    """The Workloads that are for a Job."""
    groups: Callable[[Object], Sequence[Object]]
    """The PodGroups that were made from a Workload."""
    create: Callable[[Resource, Object, Object], Object]
    """Takes the resource, the Job, and what is to be made for it; gives what was made."""

    def group_of(self, job: Object, *, has_pods: bool) -> Object | None:
        """The group that new pods of a Job belong to; None if they belong to none.

        A Job that somebody else has made a Workload or a group for is left alone.
        """
        workload = self._workload(job, has_pods=has_pods) if is_gang(job) else None
        if workload is None:
            return None
        groups = self.groups(workload)
        if groups:
            return groups[0] if len(groups) == 1 and _is_controlled_by(groups[0], job) else None
        return self.create(POD_GROUPS, job, pod_group_of(job, workload))

    def _workload(self, job: Object, *, has_pods: bool) -> Object | None:
        workloads = self.workloads(job)
        if workloads:
            is_ours = len(workloads) == 1 and _is_controlled_by(workloads[0], job)
            return workloads[0] if is_ours and len(workloads[0]["spec"]["podGroupTemplates"]) == 1 else None
        return self.create(WORKLOADS, job, workload_of(job)) if is_new(job, has_pods=has_pods) else None


def _is_controlled_by(obj: Object, job: Object) -> bool:
    """By its uid, if both have one: objects that no server has created have none."""
    uid = job["metadata"].get("uid", "")
    return any(
        owner.get("controller")
        and (owner.get("kind"), owner.get("name")) == (JOBS.kind, job["metadata"]["name"])
        and owner.get("uid", "") in ("", uid)
        for owner in obj["metadata"].get("ownerReferences") or ()
    )


def is_gang(job: Object) -> bool:
    """Whether a Job is a gang: Indexed, with all its pods in parallel, and without a schedulingGroup of its own."""
    spec = job["spec"]
    parallelism = spec.get("parallelism") or 0
    grouped = (spec["template"].get("spec") or {}).get("schedulingGroup")
    return bool(
        spec.get("completionMode") == "Indexed"
        and parallelism > 1
        and spec.get("completions") == parallelism
        and not grouped
    )


def is_new(job: Object, *, has_pods: bool) -> bool:
    """Whether it has never begun: pods that exist already are not grouped afterwards."""
    status = job.get("status") or {}
    begun = has_pods or any(status.get(key) for key in ("startTime", "succeeded", "failed"))
    return not begun and all(each.get("type") != "Suspended" for each in status.get("conditions") or ())


def workload_of(job: Object) -> Object:
    """The Workload of a Job, with one template of a gang of all its pods."""
    name = job["metadata"]["name"]
    policy = {"gang": {"minCount": job["spec"]["parallelism"]}}
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {"name": workload_name(job), "ownerReferences": [owner_reference(JOBS, job)]},
        "spec": {
            "controllerRef": {"apiGroup": JOBS.group, "kind": JOBS.kind, "name": name},
            "podGroupTemplates": [{"name": f"{name}-pgt-0", "schedulingPolicy": policy}],
        },
    }


def pod_group_of(job: Object, workload: Object) -> Object:
    """The PodGroup of a Job, as the only template of its Workload has it."""
    [template] = workload["spec"]["podGroupTemplates"]
    name, template_name = workload["metadata"]["name"], template["name"]
    owners = [owner_reference(JOBS, job), owner_reference(WORKLOADS, workload, controller=False)]
    reference = {"workloadName": name, "podGroupTemplateName": template_name}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": group_name(name, template_name), "ownerReferences": owners},
        "spec": {"podGroupTemplateRef": {"workload": reference}, "schedulingPolicy": template["schedulingPolicy"]},
    }


def with_group(pod: Object, group: Object) -> Object:
    """A pod of the Job, as a member of the group. The Job stays its only owner."""
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group["metadata"]["name"]}}}


def job_named_by(workload: Object) -> str:
    """The Job that a Workload is for; empty if it is for something else."""
    reference = workload["spec"].get("controllerRef") or {}
    is_job = (reference.get("apiGroup"), reference.get("kind")) == (JOBS.group, JOBS.kind)
    return reference.get("name", "") if is_job else ""


def workload_named_by(group: Object) -> str:
    """The Workload that a PodGroup was made from; empty if it stands alone."""
    reference = group["spec"].get("podGroupTemplateRef") or {}
    name: str = (reference.get("workload") or {}).get("workloadName", "")
    return name


def workload_name(job: Object) -> str:
    """Kubernetes' own: the Job's name, cut if need be, and a hash of its uid, in the way Go prints it."""
    hashed = _hash(f"(types.UID){job['metadata'].get('uid', '')}")
    return f"{job['metadata']['name'][: _LONGEST_NAME - len(hashed) - 1]}-{hashed}"


def group_name(workload: str, template: str) -> str:
    """Kubernetes' own: both names, of which each gets half of the room if there is too little, and a hash of them."""
    hashed = _hash(workload + template)
    room = _LONGEST_NAME - len(hashed) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{hashed}"


def _hash(text: str) -> str:
    """FNV-1a of 32 bits in decimal, spelled with letters that make no words."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(NAME_ALPHABET[ord(digit) % len(NAME_ALPHABET)] for digit in str(value))

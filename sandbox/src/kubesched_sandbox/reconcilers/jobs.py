"""Jobs, with the Workloads and PodGroups of those whose pods run all or not at all, and CronJobs."""

from __future__ import annotations

from itertools import islice

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CRON_JOBS, JOBS, PODS, Object
from kubesched.controllers.job_groups import with_group
from kubesched.controllers.jobs import (
    Indexes,
    beyond_history,
    due_times,
    index_of,
    new_pods,
    scheduled_job,
    wanted_pods,
)
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import (
    condition,
    is_active,
    is_finished,
    is_ready,
    is_terminating,
    is_true,
    with_condition,
    with_conditions,
)
from kubesched_sandbox.api.stamps import seconds_of, timestamp
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.job_groups import job_groups_of
from kubesched_sandbox.reconcilers.ownership import Owned, PodControl
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, KeyedReconciler, ObjectReconciler, key_of, owner_key

_TRACKING = "batch.kubernetes.io/job-tracking"
_BATCH = 50
_FIRST_BACKOFF, _LAST_BACKOFF = 10.0, 600.0


class Jobs(KeyedReconciler):
    """Runs the pods of every Job, and counts each once: a finalizer holds a pod until it was counted."""

    def __init__(self, api: Api, pods: Owned, *, makes_groups: bool = False) -> None:
        super().__init__(api)
        self.watches = (JOBS, PODS)
        self._pods = pods
        self._recorder = Recorder(api, "job-controller")
        self._control = PodControl(api, JOBS, self._recorder)
        self._groups = job_groups_of(api, self._recorder) if makes_groups else None

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == JOBS.path:
            self.queue.add(key_of(event.object))
            if event.type == "DELETED":
                for pod in self._pods.owned_by(event.object):
                    self.queue.add(("pod/" + pod["metadata"]["namespace"], pod["metadata"]["name"]))
        elif (key := owner_key(event.object, JOBS)) is not None:
            self.queue.add(key)
            if event.type != "DELETED" and self.api.find(JOBS, *key) is None:
                self.queue.add(("pod/" + key[0], event.object["metadata"]["name"]))

    def sync(self, key: Key, now: float) -> float | None:
        if key[0].startswith("pod/"):
            self._release_orphan(key)
            return None
        job = self.api.find(JOBS, *key)
        if job is None:
            return None
        if is_true(job, "Complete") or is_true(job, "Failed"):
            self._release(self._pods.owned_by(job))
            return self._expire(job, now)
        pods = self._pods.owned_by(job)
        job = self._count(job)
        if is_terminating(job):
            return None
        group = self._groups.group_of(job, has_pods=bool(pods)) if self._groups is not None else None
        return self._advance(job, group, now)

    # -- counting -----------------------------------------------------------------------------------------------------

    def _count(self, job: Object) -> Object:
        """Add pods that ended since the last look to the counts, then let go of them."""
        ended = [pod for pod in self._pods.owned_by(job) if _is_held(pod) and (is_finished(pod) or is_terminating(pod))]
        if not ended:
            return job
        status = dict(job.get("status") or {})
        succeeded = [pod for pod in ended if pod["status"].get("phase") == "Succeeded"]
        failed = len(ended) - len(succeeded)
        if job["spec"]["completionMode"] == "Indexed":
            done = Indexes.read(status.get("completedIndexes", ""))
            limit = job["spec"]["completions"]
            done.add(index for pod in succeeded if (index := index_of(pod)) is not None and index < limit)
            status["completedIndexes"], status["succeeded"] = str(done), len(done)
        else:
            status["succeeded"] = status.get("succeeded", 0) + len(succeeded)
        status["failed"] = status.get("failed", 0) + failed
        status = {name: value for name, value in status.items() if value not in (0, "")}
        job = self.write_status(JOBS, job, status)
        self._release(ended)
        return job

    def _release(self, pods: list[Object]) -> None:
        for pod in pods:
            if _is_held(pod):
                self.drop_finalizer(PODS, pod, _TRACKING)

    def _release_orphan(self, key: Key) -> None:
        """A pod whose Job is gone need not be counted any more."""
        pod = self.api.find(PODS, key[0].removeprefix("pod/"), key[1])
        if pod is not None and (owner := owner_key(pod, JOBS)) is not None and self.api.find(JOBS, *owner) is None:
            self._release([pod])

    # -- running ------------------------------------------------------------------------------------------------------

    def _advance(self, job: Object, group: Object | None, now: float) -> float | None:
        """End the job if it has come to an end, or bring the number of its pods to what it should be."""
        status = dict(job.get("status") or {})
        suspended = bool(job["spec"].get("suspend"))
        if not suspended:
            status.setdefault("startTime", self.api.stamps.now())
        active = self._active(job)
        deadline = None if suspended else _deadline(job, status)
        if (failure := self._failure(job, status, active, deadline, now)) is not None:
            self._fail(job, status, active, *failure)
            return None
        if self._is_complete(job, status, active):
            self._complete(job, status, active)
            return None
        again = None
        self._note_suspension(job, status, suspended)
        if suspended:
            status.pop("startTime", None)
            for pod in active:
                self._control.delete(job, pod)
        else:
            again = self._scale(job, status, active, group, now)
        self._report(job, status, self._active(job))
        return min((time for time in (again, deadline) if time is not None), default=None)

    def _active(self, job: Object) -> list[Object]:
        return [pod for pod in self._pods.owned_by(job) if is_active(pod)]

    def _failure(
        self, job: Object, status: Object, active: list[Object], deadline: float | None, now: float
    ) -> tuple[str, str] | None:
        """Why the job has failed: the reason and the message of it."""
        if deadline is not None and deadline <= now:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        restarts = sum(map(_restarts, active)) if _restarts_in_place(job) else 0
        if status.get("failed", 0) + restarts > job["spec"]["backoffLimit"]:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        return None

    def _note_suspension(self, job: Object, status: Object, suspended: bool) -> None:
        if suspended == is_true(job, "Suspended"):
            return
        word = "Suspended" if suspended else "Resumed"
        noted = condition("Suspended", str(suspended), f"Job{word}", f"Job {word.lower()}")
        self._recorder.normal(JOBS, job, word, noted["message"])
        status["conditions"] = with_condition(status.get("conditions") or [], noted, self.api.stamps.now())

    def _is_complete(self, job: Object, status: Object, active: list[Object]) -> bool:
        completions, succeeded = job["spec"].get("completions"), status.get("succeeded", 0)
        if completions is None:  # a work queue: one success means that the work is done
            return succeeded > 0 and not active
        return bool(succeeded >= completions)

    def _scale(
        self, job: Object, status: Object, active: list[Object], group: Object | None, now: float
    ) -> float | None:
        """Create or delete pods; returns when pods may be created that must wait after a failure."""
        wanted = wanted_pods({**job, "status": status}, active=len(active))
        if len(active) > wanted:
            surplus = sorted(active, key=lambda pod: (is_ready(pod), pod["metadata"]["name"]))[: len(active) - wanted]
            for pod in surplus:
                self._control.delete(job, pod)
            return None
        if len(active) == wanted:
            return None
        if (allowed := self._backoff(job, status)) > now:
            return allowed
        for pod in self._new_pods(job, status, active, min(wanted - len(active), _BATCH)):
            if self._control.create(job, pod if group is None else with_group(pod, group)) is None:
                return None
        return None

    def _new_pods(self, job: Object, status: Object, active: list[Object], count: int) -> list[Object]:
        taken = {index_of(pod) for pod in active}
        pods = list(islice(new_pods({**job, "status": status}, taken), count))
        for pod in pods:
            pod["metadata"]["finalizers"] = [*(pod["metadata"].get("finalizers") or ()), _TRACKING]
        return pods

    def _backoff(self, job: Object, status: Object) -> float:
        """When the next pod may be created: after failures in a row, each time twice as late."""
        failed = [pod for pod in self._pods.owned_by(job) if (pod.get("status") or {}).get("phase") == "Failed"]
        if not failed or not status.get("failed"):
            return float("-inf")
        last = max(_ended(pod) for pod in failed)
        return float(last + min(_FIRST_BACKOFF * 2 ** (min(status["failed"], 10) - 1), _LAST_BACKOFF))

    # -- ending -------------------------------------------------------------------------------------------------------

    def _complete(self, job: Object, status: Object, active: list[Object]) -> None:
        stamp = self.api.stamps.now()
        for pod in active:
            self._control.delete(job, pod)
        ends = ("SuccessCriteriaMet", "Complete")
        conditions = _ended_by(status, ends, "CompletionsReached", "Reached expected number of succeeded pods", stamp)
        status = {**status, "conditions": conditions, "completionTime": stamp}
        self._report(job, status, [])
        self._recorder.normal(JOBS, job, "Completed", "Job completed")

    def _fail(self, job: Object, status: Object, active: list[Object], reason: str, message: str) -> None:
        for pod in active:
            self._control.delete(job, pod)
        conditions = _ended_by(status, ("FailureTarget", "Failed"), reason, message, self.api.stamps.now())
        failed = {**status, "conditions": conditions, "failed": status.get("failed", 0) + len(active)}
        self._report(job, failed, [])
        self._recorder.warning(JOBS, job, reason, message)

    def _expire(self, job: Object, now: float) -> float | None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None or is_terminating(job):
            return None
        ended = max(seconds_of(condition["lastTransitionTime"]) for condition in job["status"]["conditions"])
        if ended + seconds > now:
            return float(ended + seconds)
        self.api.delete(JOBS, *key_of(job), propagation="Foreground", uid=job["metadata"]["uid"])
        return None

    def _report(self, job: Object, status: Object, active: list[Object]) -> None:
        leaving = sum(is_terminating(pod) and not is_finished(pod) for pod in self._pods.owned_by(job))
        counts = {"active": len(active), "ready": sum(map(is_ready, active)), "terminating": leaving}
        status = {**status, **counts, "uncountedTerminatedPods": {}}
        dropped = ("active", "succeeded", "failed")
        status = {name: value for name, value in status.items() if value not in (0, "") or name not in dropped}
        self.write_status(JOBS, self.api.get(JOBS, *key_of(job)), status)


def _ended_by(status: Object, kinds: tuple[str, str], reason: str, message: str, stamp: str) -> list[Object]:
    """The conditions of a job that comes to an end: the cause, and the end itself."""
    new = [condition(kind, "True", reason, message) for kind in kinds]
    return with_conditions(status.get("conditions") or [], new, stamp)


def _is_held(pod: Object) -> bool:
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def _deadline(job: Object, status: Object) -> float | None:
    seconds = job["spec"].get("activeDeadlineSeconds")
    return None if seconds is None or "startTime" not in status else float(seconds_of(status["startTime"]) + seconds)


def _restarts_in_place(job: Object) -> bool:
    return bool(job["spec"]["template"]["spec"].get("restartPolicy") == "OnFailure")


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(status.get("restartCount", 0) for status in statuses)


def _ended(pod: Object) -> float:
    times = [
        state["finishedAt"]
        for status in pod["status"].get("containerStatuses") or ()
        if (state := (status.get("state") or {}).get("terminated")) and state.get("finishedAt")
    ]
    return seconds_of(max(times, default=pod["metadata"]["creationTimestamp"]))


# -- CronJobs: the Job of each time that has come ---------------------------------------------------------------------


class CronJobs(ObjectReconciler):
    """Follows the schedule of every CronJob. What was missed counts once, the latest time of it."""

    def __init__(self, api: Api, jobs: Owned) -> None:
        super().__init__(api, CRON_JOBS, JOBS)
        self._jobs = jobs
        self._recorder = Recorder(api, "cronjob-controller")

    def sync_object(self, cron_job: Object, now: float) -> float | None:
        if is_terminating(cron_job):
            return None
        jobs = self._jobs.owned_by(cron_job)
        status = self._seen(cron_job, jobs)
        self._tidy(cron_job, jobs)
        again = None
        if not cron_job["spec"].get("suspend"):
            again = self._follow(cron_job, status, jobs, now)
        self.write_status(CRON_JOBS, cron_job, status)
        return again

    def _seen(self, cron_job: Object, jobs: list[Object]) -> Object:
        """The status with the Jobs that are still at work."""
        status = {**(cron_job.get("status") or {})}
        by_uid = {job["metadata"]["uid"]: job for job in jobs}
        before = {reference["uid"] for reference in status.pop("active", None) or ()}
        for uid in before & by_uid.keys():
            job = by_uid[uid]
            if (ending := _ending(job)) is not None:
                message = f"Saw completed job: {job['metadata']['name']}, condition: {ending}"
                self._recorder.normal(CRON_JOBS, cron_job, "SawCompletedJob", message)
                finished = job["status"].get("completionTime")
                if finished and ending == "Complete":
                    status["lastSuccessfulTime"] = max(finished, status.get("lastSuccessfulTime", ""))
        if active := [_reference(job) for job in jobs if _ending(job) is None and not is_terminating(job)]:
            status["active"] = active
        return status

    def _tidy(self, cron_job: Object, jobs: list[Object]) -> None:
        spec = cron_job["spec"]
        limits = {"Complete": spec.get("successfulJobsHistoryLimit"), "Failed": spec.get("failedJobsHistoryLimit")}
        for ending, limit in limits.items():
            ended = [job for job in jobs if _ending(job) == ending and not is_terminating(job)]
            for job in beyond_history(ended, limit):
                self._delete(cron_job, job)

    def _delete(self, cron_job: Object, job: Object) -> None:
        self.api.delete(JOBS, *key_of(job), propagation="Background", uid=job["metadata"]["uid"])
        self._recorder.normal(CRON_JOBS, cron_job, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")

    def _follow(self, cron_job: Object, status: Object, jobs: list[Object], now: float) -> float | None:
        """Create the Job that is due, if one is. Returns when the next one will be."""
        spec = cron_job["spec"]
        since = seconds_of(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, now - deadline)
        found = due_times(cron_job, since, now)
        if found.last is None:
            return found.next
        if status.get("active") and spec["concurrencyPolicy"] == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._recorder.normal(CRON_JOBS, cron_job, "JobAlreadyActive", message)
            return found.next
        if spec["concurrencyPolicy"] == "Replace":
            for job in jobs:
                if _ending(job) is None and not is_terminating(job):
                    self._delete(cron_job, job)
            status.pop("active", None)
        self._start(cron_job, status, found.last)
        return found.next

    def _start(self, cron_job: Object, status: Object, when: float) -> None:
        wanted = scheduled_job(cron_job, when, timestamp)
        namespace = cron_job["metadata"]["namespace"]
        try:
            job = self.api.create(JOBS, namespace, wanted, manager=MANAGER)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                message = f"Error creating job: {error.message}"
                self._recorder.warning(CRON_JOBS, cron_job, "FailedCreate", message)
                raise
        else:
            message = f"Created job {job['metadata']['name']}"
            self._recorder.normal(CRON_JOBS, cron_job, "SuccessfulCreate", message)
            status["active"] = [*(status.get("active") or ()), _reference(job)]
        status["lastScheduleTime"] = timestamp(when)


def _ending(job: Object) -> str | None:
    """How a Job has ended; None while it is at work."""
    return next((ending for ending in ("Complete", "Failed") if is_true(job, ending)), None)


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    identity = {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **identity}

"""CronJobs: creates the Job of each time that has come, and lets old ones go."""

from __future__ import annotations

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CRON_JOBS, JOBS, Object
from kubesched.controllers.jobs import beyond_history, due, scheduled_job
from kubesched.sandbox.api import Api, ApiEvent
from kubesched.sandbox.api.stamps import seconds_of, timestamp
from kubesched.sandbox.reconcilers.conditions import is_terminating, is_true
from kubesched.sandbox.reconcilers.events import Recorder
from kubesched.sandbox.reconcilers.ownership import Owned, owner_key
from kubesched.sandbox.reconcilers.reconciler import MANAGER, ObjectReconciler, key_of


class CronJobs(ObjectReconciler):
    """Follows the schedule of every CronJob. What was missed counts once, the latest time of it."""

    def __init__(self, api: Api, jobs: Owned) -> None:
        super().__init__(api, CRON_JOBS, JOBS)
        self._jobs = jobs
        self._recorder = Recorder(api, "cronjob-controller")

    def observe(self, event: ApiEvent) -> None:
        key = key_of(event.object) if event.resource is CRON_JOBS else owner_key(event.object, CRON_JOBS)
        if key is not None:
            self.queue.add(key)

    def sync_object(self, cron_job: Object, now: float) -> float | None:
        if is_terminating(cron_job):
            return None
        jobs = self._jobs.of(cron_job)
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
        found = due(cron_job, since, now)
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

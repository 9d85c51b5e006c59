"""The Workloads and PodGroups of Jobs whose pods run all or not at all, on the sandbox's API server."""

from __future__ import annotations

from kubesched.api.kinds import JOBS, POD_GROUPS, WORKLOADS, Object, Resource
from kubesched.controllers.job_groups import JobGroups, job_named_by, workload_named_by
from kubesched.sandbox.api import Api
from kubesched.sandbox.reconcilers.events import Recorder
from kubesched.sandbox.reconcilers.ownership import Grouped
from kubesched.sandbox.reconcilers.reconciler import MANAGER


def job_groups_of(api: Api, recorder: Recorder) -> JobGroups:
    """Those of all Jobs. What is made for one, its Events tell."""
    workloads = Grouped(api, WORKLOADS, lambda workload: _key(workload, job_named_by(workload)))
    groups = Grouped(api, POD_GROUPS, lambda group: _key(group, workload_named_by(group)))

    def create(resource: Resource, job: Object, obj: Object) -> Object:
        made = api.create(resource, job["metadata"]["namespace"], obj, manager=MANAGER)
        if resource is WORKLOADS:
            message = f"Created Workload {made['metadata']['name']} for Job {job['metadata']['name']}"
            recorder.normal(JOBS, job, "WorkloadCreated", message)
        return made

    return JobGroups(
        lambda job: workloads.of("".join(_key(job, job["metadata"]["name"]))),
        lambda workload: groups.of("".join(_key(workload, workload["metadata"]["name"]))),
        create,
    )


def _key(obj: Object, name: str) -> tuple[str, ...]:
    return (f"{obj['metadata']['namespace']}/{name}",) if name else ()

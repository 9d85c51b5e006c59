"""Workloads and PodGroups of Jobs: where the sandbox keeps them, and how its Job controller makes and resizes them."""

from __future__ import annotations

from kubesched.admission import NEWER
from kubesched.api.kinds import JOBS, POD_GROUPS, WORKLOADS, Object, Resource
from kubesched.controllers.job_groups import JobGroups, controller_of, workload_named_by
from kubesched_sandbox.api import Api
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Grouped
from kubesched_sandbox.reconcilers.reconciler import MANAGER, key_of


def job_groups_of(api: Api, recorder: Recorder) -> JobGroups:
    """Those of all Jobs. What is made for one, its Events tell."""
    workloads = Grouped(api, WORKLOADS, lambda workload: _key(workload, controller_of(workload)))
    groups = Grouped(api, POD_GROUPS, lambda group: _key(group, workload_named_by(group)))

    def create(resource: Resource, job: Object, obj: Object) -> Object:
        made = api.create(resource, job["metadata"]["namespace"], obj, manager=MANAGER)
        if resource is WORKLOADS or api.release.job_scheduling:
            message = f"Created {resource.kind} {made['metadata']['name']} for Job {job['metadata']['name']}"
            recorder.normal(JOBS, job, f"{resource.kind}Created", message)
        return made

    def resize(resource: Resource, obj: Object, count: int) -> None:
        newer = NEWER[0] if resource is POD_GROUPS else NEWER[1]  # in the older version nothing of them changes
        spec = api.get(newer, *key_of(obj))["spec"]
        policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
        templates = [{**template, **policy} for template in spec.get("podGroupTemplates") or ()]
        api.patch(newer, *key_of(obj), {"spec": {"podGroupTemplates": templates} if templates else policy})

    return JobGroups(
        api.release,
        lambda namespace, owner: workloads.of(f"{namespace}/{owner}"),
        lambda workload: groups.of("".join(_key(workload, workload["metadata"]["name"]))),
        create,
        resize,
    )


def _key(obj: Object, name: str) -> tuple[str, ...]:
    return (f"{obj['metadata']['namespace']}/{name}",) if name else ()

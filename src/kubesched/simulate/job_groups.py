"""The Workloads and PodGroups of Jobs whose pods run all or not at all, among the objects of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.kinds import WORKLOADS, Object, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.pod_groups import PodGroup, Workload
from kubesched.controllers.jobs import JobGroups, job_named_by, workload_named_by


def job_groups_among(given: Iterable[KubeObject], add: Callable[[KubeObject], None]) -> JobGroups:
    """Those of all Jobs; `add` is called with what is made for one."""
    known = [msgspec.to_builtins(obj) for obj in given if isinstance(obj, PodGroup | Workload)]

    def named(name_in: Callable[[Object], str]) -> Callable[[Object], list[Object]]:
        def of(owner: Object) -> list[Object]:
            namespace, name = owner["metadata"]["namespace"], owner["metadata"]["name"]
            return [obj for obj in known if obj["metadata"]["namespace"] == namespace and name_in(obj) == name]

        return of

    def create(resource: Resource, job: Object, obj: Object) -> Object:
        namespace = job["metadata"]["namespace"]
        key = f"{namespace}/{obj['metadata']['name']}"
        made = {**obj, "metadata": {**obj["metadata"], "namespace": namespace, "uid": f"{resource.kind}/{key}"}}
        known.append(made)
        add(msgspec.convert(made, Workload if resource is WORKLOADS else PodGroup))
        return made

    return JobGroups(named(job_named_by), named(workload_named_by), create)

"""Jobs that need all of their pods or none: the Workload and the PodGroup that stand for one, and their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubesched.api.kinds import JOBS, POD_GROUPS, WORKLOADS, Object, Resource
from kubesched.controllers.pod_templates import NAME_ALPHABET, owner_reference

_LONGEST_NAME = 253


@dataclass(frozen=True)
class JobGroups:
    """Finds and makes them, in a cluster of which it knows no more than this."""

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
        found = self.groups(workload)
        if found:
            return found[0] if len(found) == 1 and _is_controlled_by(found[0], job) else None
        return self.create(POD_GROUPS, job, pod_group_of(job, workload))

    def _workload(self, job: Object, *, has_pods: bool) -> Object | None:
        found = self.workloads(job)
        if found:
            is_ours = len(found) == 1 and _is_controlled_by(found[0], job)
            return found[0] if is_ours and len(found[0]["spec"]["podGroupTemplates"]) == 1 else None
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
    """Whether its pods run side by side, each with an index of its own, and nobody has said how to group them."""
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
        "spec": {
            "podGroupTemplateRef": {"workload": reference},
            "schedulingPolicy": template["schedulingPolicy"],
        },
    }


def grouped(pod: Object, group: Object) -> Object:
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

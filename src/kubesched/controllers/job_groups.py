"""The Workload and the PodGroup that the Job controller makes for a Job, and the pods that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubesched.api.kinds import JOBS, POD_GROUPS, WORKLOADS, Object, Resource
from kubesched.api.release import Release
from kubesched.controllers.pod_templates import NAME_ALPHABET, owner_reference

TEMPLATE_NAME = "scheduling.k8s.io/group-template-name"
"""The annotation by which an owner leaves the group of a Job to its controller: a template of the owner's Workload."""
_LONGEST_NAME = 253
_MODES = {"single": "Pod", "all": "PodGroup"}
"""How a Job says it, and a stored Workload."""


@dataclass(frozen=True)
class JobGroups:
    """Finds or makes the Workload and the PodGroup of a Job, with the functions given here for reading and writing."""

    release: Release
    """The release whose Job controller this is."""
    workloads: Callable[[str, str], Sequence[Object]]
    """The Workloads of a namespace that are for somebody, as `controller_of` has it."""
    groups: Callable[[Object], Sequence[Object]]
    """The PodGroups that were made from a Workload."""
    create: Callable[[Resource, Object, Object], Object]
    """Takes the resource, the Job, and what is to be made for it; gives what was made."""
    resize: Callable[[Resource, Object, int], None]
    """Takes the resource, a Workload or PodGroup that is there, and how many pods its gang needs from now on."""

    def group_of(self, job: Object, *, has_pods: bool) -> Object | None:
        """The group that new pods of a Job belong to; None if they belong to none."""
        may_create = is_new(job, has_pods=has_pods)
        if not self.release.job_scheduling:
            return self._gang_of(job, may_create) if is_gang(job) else None
        if _is_grouped(job):
            return None
        if (owner := _controller(job)) is not None:
            return self._delegated_group(job, owner, may_create)
        return self._own_group(job, may_create)

    def _gang_of(self, job: Object, may_create: bool) -> Object | None:
        """As v1.36 has it: a Job that somebody else has made a Workload or a group for is left alone."""
        workloads = self._workloads_of(job)
        if not workloads and may_create:
            gang = {"gang": {"minCount": job["spec"]["parallelism"]}}
            workloads = [self.create(WORKLOADS, job, workload_of(job, gang))]
        if len(workloads) != 1 or not _is_controlled_by(workloads[0], job):
            return None
        [workload] = workloads
        if len(workload["spec"]["podGroupTemplates"]) != 1:
            return None
        groups = self.groups(workload)
        if groups:
            return groups[0] if len(groups) == 1 and _is_controlled_by(groups[0], job) else None
        return self.create(POD_GROUPS, job, pod_group_of(job, workload))

    def _own_group(self, job: Object, may_create: bool) -> Object | None:
        """The group that the controller has made for the Job, or makes; what others made does not count."""
        workloads = [obj for obj in self._workloads_of(job) if _is_controlled_by(obj, job)]
        if not workloads and may_create:
            workloads = [self.create(WORKLOADS, job, workload_for(job))]
        if len(workloads) != 1 or len(workloads[0]["spec"]["podGroupTemplates"]) != 1:
            return None
        [workload] = workloads
        groups = [obj for obj in self.groups(workload) if _is_controlled_by(obj, job)]
        if not groups and may_create:
            groups = [self.create(POD_GROUPS, job, pod_group_of(job, workload))]
        template = workload_for(job)["spec"]["podGroupTemplates"][0]
        self._follow(template, workload, groups)
        return groups[0] if len(groups) == 1 else None

    def _delegated_group(self, job: Object, owner: Object, may_create: bool) -> Object | None:
        """The owner has made the Workload, and names one of its templates; the Job makes the group."""
        name = (job["metadata"].get("annotations") or {}).get(TEMPLATE_NAME)
        api_group, _, _ = owner["apiVersion"].rpartition("/")
        workloads = self.workloads(job["metadata"]["namespace"], f"{api_group}/{owner['kind']}/{owner['name']}")
        if name is None or not workloads:
            return None
        templates = workloads[0]["spec"].get("podGroupTemplates") or ()
        template = next((template for template in templates if name in ("", template["name"])), None)
        if template is None:
            return None
        groups = [group for group in self.groups(workloads[0]) if _is_controlled_by(group, job)][:1]
        if not groups and may_create:
            groups = [self.create(POD_GROUPS, job, pod_group_of(job, workloads[0], template, owned=False))]
        self._follow(template, None, groups)
        return groups[0] if groups else None

    def _workloads_of(self, job: Object) -> Sequence[Object]:
        metadata = job["metadata"]
        return self.workloads(metadata["namespace"], f"{JOBS.group}/{JOBS.kind}/{metadata['name']}")

    def _follow(self, template: Object, workload: Object | None, groups: Sequence[Object]) -> None:
        """A gang may be resized: then its Workload and its group are."""
        count = _min_count(template)
        if count is None:
            return
        if workload is not None and _min_count(workload["spec"]["podGroupTemplates"][0]) not in (None, count):
            self.resize(WORKLOADS, workload, count)
        for group in groups:
            if _min_count(group["spec"]) not in (None, count):
                self.resize(POD_GROUPS, group, count)


def _min_count(spec: Object) -> int | None:
    """How many pods a gang needs; None of what is no gang."""
    gang: Object | None = spec["schedulingPolicy"].get("gang")
    return None if gang is None else gang["minCount"]


def _controller(obj: Object) -> Object | None:
    owners: Sequence[Object] = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _is_controlled_by(obj: Object, job: Object) -> bool:
    """By its uid, if both have one: objects that no server has created have none."""
    owner, metadata = _controller(obj), job["metadata"]
    return (
        owner is not None
        and (owner.get("kind"), owner.get("name")) == (JOBS.kind, metadata["name"])
        and owner.get("uid", "") in ("", metadata.get("uid", ""))
    )


def _is_grouped(job: Object) -> bool:
    """Whether somebody has said how to group its pods."""
    return bool((job["spec"]["template"].get("spec") or {}).get("schedulingGroup"))


def is_gang(job: Object) -> bool:
    """Whether v1.36 makes a gang of a Job: Indexed, with all its pods in parallel, and without a group of its own."""
    spec = job["spec"]
    parallelism = spec.get("parallelism") or 0
    is_at_once = spec.get("completionMode") == "Indexed" and parallelism > 1 and spec.get("completions") == parallelism
    return is_at_once and not _is_grouped(job)


def is_new(job: Object, *, has_pods: bool) -> bool:
    """Whether it has never begun: pods that exist already are not grouped afterwards."""
    status = job.get("status") or {}
    begun = has_pods or any(status.get(key) for key in ("startTime", "succeeded", "failed"))
    return not begun and all(condition.get("type") != "Suspended" for condition in status.get("conditions") or ())


def workload_for(job: Object) -> Object:
    """The Workload of a Job as its `spec.scheduling` says: a gang only where that asks for one, of all side by side."""
    spec = job["spec"]
    scheduling, pod = spec.get("scheduling") or {}, spec["template"].get("spec") or {}
    policy = scheduling.get("schedulingPolicy") or {}
    parallelism = 1 if spec.get("parallelism") is None else spec["parallelism"]
    if (gang := policy.get("gang")) is not None:
        policy = {"gang": {"minCount": gang.get("minCount") or max(1, parallelism)}}
    more = {name: scheduling[name] for name in ("schedulingConstraints", "resourceClaims") if scheduling.get(name)}
    if mode := next((_MODES[name] for name in scheduling.get("disruptionMode") or () if name in _MODES), ""):
        more["disruptionMode"] = mode
    if pod.get("priorityClassName"):
        more["priorityClassName"] = pod["priorityClassName"]
    return workload_of(job, policy or {"basic": {}}, **more)


def workload_of(job: Object, policy: Object, **more: object) -> Object:
    """The Workload of a Job, with one template for the group of all its pods."""
    name = job["metadata"]["name"]
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {"name": workload_name(job), "ownerReferences": [owner_reference(JOBS, job)]},
        "spec": {
            "controllerRef": {"apiGroup": JOBS.group, "kind": JOBS.kind, "name": name},
            "podGroupTemplates": [{"name": f"{name}-pgt-0", "schedulingPolicy": policy, **more}],
        },
    }


def pod_group_of(job: Object, workload: Object, template: Object | None = None, *, owned: bool = True) -> Object:
    """The PodGroup of a Job, as a template of a Workload has it, by default the first; the Workload owns it, too, if it
    is the Job's own."""
    template = template or workload["spec"]["podGroupTemplates"][0]
    name, template_name = workload["metadata"]["name"], template["name"]
    owners = [owner_reference(JOBS, job)]
    owners += [owner_reference(WORKLOADS, workload, controller=False)] if owned else []
    reference = {"workloadName": name, "podGroupTemplateName": template_name}
    spec = {key: value for key, value in template.items() if key != "name"}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": group_name(name, template_name), "ownerReferences": owners},
        "spec": {"podGroupTemplateRef": {"workload": reference}, **spec},
    }


def with_group(pod: Object, group: Object) -> Object:
    """A pod of the Job, as a member of the group. The Job stays its only owner."""
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group["metadata"]["name"]}}}


def controller_of(workload: Object) -> str:
    """The object that a Workload is for, such as `batch/Job/work`; empty if it names none."""
    reference = workload["spec"].get("controllerRef")
    return "/".join(reference.get(key, "") for key in ("apiGroup", "kind", "name")) if reference else ""


def workload_named_by(group: Object) -> str:
    """The Workload that a PodGroup was made from; empty if it stands alone."""
    reference = group["spec"].get("podGroupTemplateRef") or {}
    name: str = (reference.get("workload") or {}).get("workloadName", "")
    return name


def workload_name(job: Object) -> str:
    """The name that Kubernetes gives: the Job's, cut if need be, and a hash of its uid as Go prints it."""
    hashed = _hash(f"(types.UID){job['metadata'].get('uid', '')}")
    return f"{job['metadata']['name'][: _LONGEST_NAME - len(hashed) - 1]}-{hashed}"


def group_name(workload: str, template: str) -> str:
    """The name that Kubernetes gives: both names, each cut to half of the room if need be, and a hash of them."""
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

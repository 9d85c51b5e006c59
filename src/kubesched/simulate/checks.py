"""What the API server would refuse in an object that scheduling reads, field by field.

The rules are those for new objects in Kubernetes v1.36, as far as they bear on scheduling. Where the server is lenient
with objects that exist already, such as label values in node selectors, nothing is said.
"""

from __future__ import annotations

import re

from kubesched.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from kubesched.api.device_claims import ResourceClaim, ResourceClaimTemplate
from kubesched.api.devices import DeviceClass, ResourceSlice
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Container, Pod, PodSpec, PodStatus, Toleration
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_value_fault, parse_int64
from kubesched.api.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
)
from kubesched.api.workloads import PodDisruptionBudget, PriorityClass, ReplicaSet, StatefulSet
from kubesched.simulate.device_checks import check_claim, check_class, check_slice, check_template
from kubesched.simulate.findings import Findings
from kubesched.simulate.workload_kinds import DaemonSet, Deployment, Job, Workload

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_INT64 = 2**63 - 1
_POLICIES = ("Never", "PreemptLowerPriority")


def mistakes_in(obj: KubeObject) -> list[Mistake]:
    """All that is wrong with one object."""
    found = Findings()
    _meta(found, obj.metadata)
    match obj:
        case Pod():
            _pod_spec(found, obj.spec)
            _pod_status(found, obj.status)
        case Node():
            _node(found, obj)
        case PersistentVolume():
            _volume(found, obj)
        case PersistentVolumeClaim():
            _claim(found, "spec", obj.spec)
        case CSIStorageCapacity():
            _storage_capacity(found, obj)
        case CSINode():
            for i, driver in enumerate(obj.spec.drivers):
                count = driver.allocatable.count if driver.allocatable else None
                found.number(f"spec.drivers[{i}].allocatable.count", count, low=0)
        case PodDisruptionBudget():
            found.selector("spec.selector", obj.spec.selector)
            found.number("status.disruptionsAllowed", obj.status.disruptions_allowed)
        case ReplicaSet() | StatefulSet():
            found.selector("spec.selector", obj.spec.selector)
        case Workload():
            _workload(found, obj)
        case ResourceSlice():
            check_slice(found, obj)
        case DeviceClass():
            check_class(found, obj)
        case ResourceClaim():
            check_claim(found, obj)
        case ResourceClaimTemplate():
            check_template(found, obj)
        case PriorityClass():
            found.number("value", obj.value)
            found.one_of("preemptionPolicy", obj.preemption_policy, _POLICIES)
    return found.mistakes


def _meta(found: Findings, meta: ObjectMeta) -> None:
    if not meta.name:
        found.say("metadata.name", "required field is missing")
    elif len(meta.name) > 253 or not _NAME.fullmatch(meta.name):
        found.say("metadata.name", f"{meta.name!r} is not a name: lower case letters, digits, '-' and '.' make one")
    if meta.namespace and (len(meta.namespace) > 63 or "." in meta.namespace or not _NAME.fullmatch(meta.namespace)):
        found.say("metadata.namespace", f"{meta.namespace!r} is not the name of a namespace")
    found.labels("metadata.labels", meta.labels)
    found.time("metadata.creationTimestamp", meta.creation_timestamp)


def _workload(found: Findings, workload: Workload) -> None:
    spec, template = workload.spec, Findings()
    found.selector("spec.selector", spec.selector)
    for name in ("replicas", "parallelism", "completions"):
        found.number(f"spec.{name}", getattr(spec, name), low=0)
    if isinstance(workload, Deployment | DaemonSet | Job) and not spec.template.spec.containers:
        found.say("spec.template.spec.containers", "required field is missing")
    template.labels("metadata.labels", spec.template.metadata.labels)
    _pod_spec(template, spec.template.spec)
    for mistake in template.mistakes:
        found.say(f"spec.template.{mistake.path}", mistake.problem)
    for i, claim in enumerate(spec.volume_claim_templates):
        _claim(found, f"spec.volumeClaimTemplates[{i}].spec", claim.spec)


# -- pods -------------------------------------------------------------------------------------------------------------


def _pod_spec(found: Findings, spec: PodSpec) -> None:
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(containers):
            _container(found, f"spec.{name}[{i}]", container)
    if spec.resources is not None:
        found.resources("spec.resources", spec.resources)
    found.amounts("spec.overhead", spec.overhead)
    found.labels("spec.nodeSelector", spec.node_selector)
    found.number("spec.priority", spec.priority)
    for i, toleration in enumerate(spec.tolerations):
        _toleration(found, f"spec.tolerations[{i}]", toleration)
    if spec.affinity is not None:
        _affinity(found, spec.affinity)
    _spread(found, spec)
    for i, volume in enumerate(spec.volumes):
        template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
        if template is not None:
            _claim(found, f"spec.volumes[{i}].ephemeral.volumeClaimTemplate.spec", template.spec)


def _container(found: Findings, path: str, container: Container) -> None:
    found.resources(f"{path}.resources", container.resources)
    for i, port in enumerate(container.ports):
        found.number(f"{path}.ports[{i}].hostPort", port.host_port, 0, 65535)
        found.number(f"{path}.ports[{i}].containerPort", port.container_port, 0, 65535)


def _toleration(found: Findings, path: str, toleration: Toleration) -> None:
    if toleration.key:
        found.label_key(f"{path}.key", toleration.key)
    elif toleration.operator != "Exists":
        found.say(f"{path}.operator", "must be Exists when no key is given, which tolerates every taint")
    match toleration.operator:
        case "Exists":
            if toleration.value:
                found.say(f"{path}.value", "operator Exists takes no value")
        case "Lt" | "Gt":
            if parse_int64(toleration.value) is None:
                found.say(f"{path}.value", f"{toleration.value!r} is not a whole number")
        case _:
            if fault := label_value_fault(toleration.value):
                found.say(f"{path}.value", fault)


def _affinity(found: Findings, affinity: Affinity) -> None:
    node = affinity.node_affinity
    if node is not None:
        path = "spec.affinity.nodeAffinity"
        required = node.required_during_scheduling_ignored_during_execution
        found.node_selector(f"{path}.requiredDuringSchedulingIgnoredDuringExecution", required)
        for i, term in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
            found.number(f"{here}.weight", term.weight, 1, 100)
            found.node_term(f"{here}.preference", term.preference)
    _pod_affinity(found, "spec.affinity.podAffinity", affinity.pod_affinity)
    _pod_affinity(found, "spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)


def _pod_affinity(found: Findings, path: str, affinity: PodAffinity | None) -> None:
    if affinity is None:
        return
    for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        _affinity_term(found, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{i}]", term)
    for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]"
        found.number(f"{here}.weight", weighted.weight, 1, 100)
        _affinity_term(found, f"{here}.podAffinityTerm", weighted.pod_affinity_term)


def _affinity_term(found: Findings, path: str, term: PodAffinityTerm) -> None:
    found.label_key(f"{path}.topologyKey", term.topology_key)
    found.selector(f"{path}.labelSelector", term.label_selector)
    found.selector(f"{path}.namespaceSelector", term.namespace_selector)


def _spread(found: Findings, spec: PodSpec) -> None:
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(spec.topology_spread_constraints):
        path = f"spec.topologySpreadConstraints[{i}]"
        found.number(f"{path}.maxSkew", constraint.max_skew, low=1)
        found.number(f"{path}.minDomains", constraint.min_domains, low=1)
        if constraint.min_domains is not None and constraint.when_unsatisfiable != "DoNotSchedule":
            found.say(f"{path}.minDomains", "goes only with whenUnsatisfiable: DoNotSchedule")
        if not constraint.topology_key:
            found.say(f"{path}.topologyKey", "required field is missing")
        found.selector(f"{path}.labelSelector", constraint.label_selector)
        kind = (constraint.topology_key, constraint.when_unsatisfiable)
        if kind in seen:
            found.say(path, f"there is a constraint on {kind[0]!r} with {kind[1]} already")
        seen.add(kind)


def _pod_status(found: Findings, status: PodStatus) -> None:
    found.time("status.startTime", status.start_time)
    statuses = (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    )
    for name, containers in statuses:
        for i, container in enumerate(containers):
            found.amounts(f"status.{name}[{i}].allocatedResources", container.allocated_resources)
            if container.resources is not None:
                found.amounts(f"status.{name}[{i}].resources.requests", container.resources.requests)
    found.amounts("status.allocatedResources", status.allocated_resources)
    if status.resources is not None:
        found.amounts("status.resources.requests", status.resources.requests)


# -- nodes and storage ------------------------------------------------------------------------------------------------


def _node(found: Findings, node: Node) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(node.spec.taints):
        found.label_key(f"spec.taints[{i}].key", taint.key)
        if fault := label_value_fault(taint.value):
            found.say(f"spec.taints[{i}].value", fault)
        if (taint.key, taint.effect) in seen:
            found.say(f"spec.taints[{i}]", f"there is a taint {taint.key!r} with {taint.effect} already")
        seen.add((taint.key, taint.effect))
    found.amounts("status.capacity", node.status.capacity)
    found.amounts("status.allocatable", node.status.allocatable)
    for i, image in enumerate(node.status.images):
        found.number(f"status.images[{i}].sizeBytes", image.size_bytes, 0, _MAX_INT64)


def _volume(found: Findings, volume: PersistentVolume) -> None:
    found.amounts("spec.capacity", volume.spec.capacity)
    if volume.spec.node_affinity is not None:
        found.node_selector("spec.nodeAffinity.required", volume.spec.node_affinity.required)


def _claim(found: Findings, path: str, spec: PersistentVolumeClaimSpec) -> None:
    found.amounts(f"{path}.resources.requests", spec.resources.requests)
    found.selector(f"{path}.selector", spec.selector)


def _storage_capacity(found: Findings, capacity: CSIStorageCapacity) -> None:
    found.selector("nodeTopology", capacity.node_topology)
    for path, text in (("capacity", capacity.capacity), ("maximumVolumeSize", capacity.maximum_volume_size)):
        if text is not None:
            found.quantity(path, text)

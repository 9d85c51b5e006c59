"""Cells that need the whole object, of all kinds but pods and their groups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubesched.admission.reading import value_at
from kubesched.api.kinds import Object
from kubesched.api.well_known import DEFAULT_STORAGE_CLASS, STORAGE_CLASS
from kubesched_sandbox.tables.column import (
    NONE,
    UNKNOWN,
    access_modes,
    addresses,
    count,
    each,
    human_duration,
    is_leaving,
    is_true,
    listed,
    moment,
    size,
    word,
)


def entries(config_map: Object, _: datetime) -> int:
    return size(value_at(config_map, "data")) + size(value_at(config_map, "binaryData"))


# -- services ---------------------------------------------------------------------------------------------------------


def cluster_address(service: Object, _: datetime) -> str:
    return listed(service, "spec", "clusterIPs").partition(",")[0] or word(service, "spec", "clusterIP", otherwise=NONE)


def balanced_address(service: Object, _: datetime) -> str:
    kind, outside = word(service, "spec", "type"), listed(service, "spec", "externalIPs")
    if kind == "ExternalName":
        return word(service, "spec", "externalName")
    if kind != "LoadBalancer":
        return outside or NONE
    balanced = addresses(value_at(service, "status", "loadBalancer", "ingress"))
    return ",".join(filter(None, (balanced, outside))) or "<pending>"


def service_ports(service: Object, _: datetime) -> str:
    ports = []
    for port in each(service, "spec", "ports"):
        node_port = f":{count(port, 'nodePort')}" if count(port, "nodePort") else ""
        ports.append(f"{count(port, 'port')}{node_port}/{word(port, 'protocol')}")
    return ",".join(ports) or NONE


# -- events, in the old shape and the new -----------------------------------------------------------------------------


def times_seen(event: Object, _: datetime) -> str:
    seen = count(event, "series", "count") or count(event, "count") or count(event, "deprecatedCount")
    return str(seen or 1)


def event_object(event: Object, _: datetime) -> str:
    about = _about(event)
    kind, name = word(about, "kind").lower(), word(about, "name")
    return f"{kind}/{name}" if name else kind


def event_source(event: Object, _: datetime) -> str:
    old = value_at(event, "source") or value_at(event, "deprecatedSource")
    component = word(old, "component") or word(event, "reportingComponent") or word(event, "reportingController")
    host = word(old, "host") or word(event, "reportingInstance")
    return f"{component}, {host}" if component and host else component


def _about(event: Object) -> Object:
    found = value_at(event, "involvedObject") or value_at(event, "regarding")
    return found if isinstance(found, dict) else {}


# -- nodes and devices ------------------------------------------------------------------------------------------------


_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"


def node_status(node: Object, _: datetime) -> str:
    ready = [condition for condition in each(node, "status", "conditions") if condition.get("type") == "Ready"]
    states = [("Ready" if ready[-1].get("status") == "True" else "NotReady") if ready else "Unknown"]
    if value_at(node, "spec", "unschedulable") is True:
        states.append("SchedulingDisabled")
    return ",".join(states)


def node_roles(node: Object, _: datetime) -> str:
    labels = value_at(node, "metadata", "labels")
    if not isinstance(labels, dict):
        return NONE
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    if named := word(labels, _OLD_ROLE):
        roles.add(named)
    return ",".join(sorted(roles)) or NONE


def internal_address(node: Object, _: datetime) -> str:
    return _address(node, "InternalIP")


def external_address(node: Object, _: datetime) -> str:
    return _address(node, "ExternalIP")


def _address(node: Object, kind: str) -> str:
    found = (word(address, "address") for address in each(node, "status", "addresses") if address.get("type") == kind)
    return next(found, NONE)


def node_kernel(node: Object, _: datetime) -> str:
    version, built_for = (word(node, "status", "nodeInfo", key) for key in ("kernelVersion", "architecture"))
    return f"{version or UNKNOWN} ({built_for})" if built_for else version or UNKNOWN


def claim_state(claim: Object, _: datetime) -> str:
    states = ["deleted"] if is_leaving(claim) else []
    if value_at(claim, "status", "allocation") is not None:
        states.append("allocated")
        if each(claim, "status", "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


# -- workloads --------------------------------------------------------------------------------------------------------


def replicas_ready(obj: Object, _: datetime) -> str:
    return f"{count(obj, 'status', 'readyReplicas')}/{count(obj, 'spec', 'replicas')}"


_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_status(job: Object, _: datetime) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if is_leaving(job):
        return "Terminating"
    return next((condition for condition in _JOB_STATES if is_true(job, condition)), "Running")


def job_completions(job: Object, _: datetime) -> str:
    done, parallel = count(job, "status", "succeeded"), count(job, "spec", "parallelism")
    if value_at(job, "spec", "completions") is not None:
        return f"{done}/{count(job, 'spec', 'completions')}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: datetime) -> str:
    begun, ended = (moment(value_at(job, "status", key)) for key in ("startTime", "completionTime"))
    return "" if begun is None else human_duration(((ended or now) - begun).total_seconds())


def controller(obj: Object, _: datetime) -> str:
    owners = (owner for owner in each(obj, "metadata", "ownerReferences") if owner.get("controller") is True)
    owner = next(owners, None)
    if owner is None:
        return NONE
    group = word(owner, "apiVersion").rpartition("/")[0]
    kind = word(owner, "kind").lower()
    return f"{kind}.{group}/{word(owner, 'name')}" if group else f"{kind}/{word(owner, 'name')}"


# -- volumes and their classes ----------------------------------------------------------------------------------------


def volume_phase(obj: Object, _: datetime) -> str:
    return "Terminating" if is_leaving(obj) else word(obj, "status", "phase")


def storage_class(obj: Object, _: datetime) -> str:
    return word(obj, "metadata", "annotations", STORAGE_CLASS) or word(obj, "spec", "storageClassName")


def bound_capacity(claim: Object, _: datetime) -> str:
    """A claim has the size of its volume, once it has one."""
    return word(claim, "status", "capacity", "storage", otherwise="0") if word(claim, "spec", "volumeName") else ""


def bound_modes(claim: Object, _: datetime) -> str:
    return access_modes(value_at(claim, "status", "accessModes")) if word(claim, "spec", "volumeName") else ""


def volume_claim(volume: Object, _: datetime) -> str:
    claim = value_at(volume, "spec", "claimRef")
    return f"{word(claim, 'namespace')}/{word(claim, 'name')}" if isinstance(claim, dict) else ""


def class_name(storage_class: Object, _: datetime) -> str:
    name = word(storage_class, "metadata", "name")
    return (
        f"{name} (default)" if word(storage_class, "metadata", "annotations", DEFAULT_STORAGE_CLASS) == "true" else name
    )


def token_audiences(driver: Object, _: datetime) -> str:
    requests = each(driver, "spec", "tokenRequests")
    return ",".join(word(request, "audience") for request in requests) if requests else "<unset>"


UNSET = "<unset>"
_SHOWN = 3
"""How many of a list are shown before the rest is only counted."""


def _some(found: list[str], none: str = NONE) -> str:
    rest = len(found) - _SHOWN
    return ",".join(found[:_SHOWN]) + (f" + {rest} more..." if rest > 0 else "") or none


# -- jobs by schedule, and autoscalers --------------------------------------------------------------------------------


def scale_metrics(autoscaler: Object, _: datetime) -> str:
    now = each(autoscaler, "status", "currentMetrics")
    shown = []
    for i, metric in enumerate(each(autoscaler, "spec", "metrics")):
        shown.append(_metric(metric, now[i] if i < len(now) else {}))
    return ", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "") or NONE


_SOURCES = ("resource", "containerResource", "pods", "object", "external")


def _metric(metric: Object, now: Object) -> str:
    source = next((key for key in _SOURCES if key in metric), "")
    wanted, found = value_at(metric, source, "target"), value_at(now, source, "current")
    name = word(metric, source, "name")
    before = f"{name}: " if name else ""
    if value_at(wanted, "averageUtilization") is not None:
        share = value_at(found, "averageUtilization")
        return f"{before}{UNKNOWN if share is None else f'{share}%'}/{word(wanted, 'averageUtilization')}%"
    key = "averageValue" if value_at(wanted, "averageValue") is not None else "value"
    return f"{before}{word(found, key, otherwise=UNKNOWN)}/{word(wanted, key)}"


# -- networking -------------------------------------------------------------------------------------------------------


def ingress_hosts(ingress: Object, _: datetime) -> str:
    return _some([word(rule, "host") for rule in each(ingress, "spec", "rules") if word(rule, "host")], "*")


def ingress_ports(ingress: Object, _: datetime) -> str:
    return "80, 443" if each(ingress, "spec", "tls") else "80"


def ingress_parameters(ingress_class: Object, _: datetime) -> str:
    given = value_at(ingress_class, "spec", "parameters")
    if not isinstance(given, dict):
        return NONE
    group = word(given, "apiGroup")
    return f"{word(given, 'kind')}{f'.{group}' if group else ''}/{word(given, 'name')}"


def address_parent(address: Object, _: datetime) -> str:
    parent = value_at(address, "spec", "parentRef")
    return "/".join(filter(None, (word(parent, "resource"), word(parent, "namespace"), word(parent, "name"))))


def endpoint_addresses(endpoints: Object, _: datetime) -> str:
    found = []
    for subset in each(endpoints, "subsets"):
        hosts = [word(address, "ip") for address in each(subset, "addresses")]
        ports = [f":{count(port, 'port')}" for port in each(subset, "ports")] or [""]
        found += [f"{host}{port}" for port in ports for host in hosts]
    return _some(found)


def slice_ports(endpoint_slice: Object, _: datetime) -> str:
    return _some([word(port, "port", otherwise="*") for port in each(endpoint_slice, "ports")], UNSET)


def slice_addresses(endpoint_slice: Object, _: datetime) -> str:
    return _some([listed(endpoint, "addresses") for endpoint in each(endpoint_slice, "endpoints")], UNSET)


# -- quotas, roles, certificates, extensions --------------------------------------------------------------------------


def quota_requests(quota: Object, _: datetime) -> str:
    return _shares(quota, lambda name: not name.startswith("limits"))


def quota_limits(quota: Object, _: datetime) -> str:
    return _shares(quota, lambda name: name.startswith("limits"))


def _shares(quota: Object, belongs: Callable[[str], bool]) -> str:
    hard, used = value_at(quota, "status", "hard"), value_at(quota, "status", "used")
    names = sorted(filter(belongs, hard)) if isinstance(hard, dict) else []
    return ", ".join(f"{name}: {word(used, name, otherwise='0')}/{word(hard, name)}" for name in names)


def _subjects(kind: str) -> Callable[[Object, datetime], str]:
    def cell(binding: Object, _: datetime) -> str:
        found = [subject for subject in each(binding, "subjects") if subject.get("kind") == kind]
        return ", ".join(
            "/".join(filter(None, (word(subject, "namespace"), word(subject, "name")))) for subject in found
        )

    return cell


bound_users, bound_groups, bound_accounts = _subjects("User"), _subjects("Group"), _subjects("ServiceAccount")


def signing_state(request: Object, _: datetime) -> str:
    states = [state for state in ("Approved", "Denied", "Failed") if is_true(request, state)]
    states += ["Issued"] if word(request, "status", "certificate") else []
    return ",".join(states) or "Pending"


def service_available(service: Object, _: datetime) -> str:
    return "True" if is_true(service, "Available") or value_at(service, "spec", "service") is None else "False"


def component_state(component: Object, _: datetime) -> str:
    states = {"True": "Healthy", "False": "Unhealthy"}
    return next((states.get(state["status"], "Unknown") for state in component["conditions"]), "Unknown")


def component_message(component: Object, _: datetime) -> str:
    return next((state.get("message", "") for state in component["conditions"]), "")

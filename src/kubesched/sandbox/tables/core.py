"""Columns of core kinds: nodes, namespaces, services, configuration, events; and of what guards and claims."""

from __future__ import annotations

from datetime import datetime

from kubesched.api.kinds import Object
from kubesched.sandbox.tables.column import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    Column,
    at,
    boolean,
    count,
    each,
    field,
    is_leaving,
    labels,
    listed,
    number,
    since,
    word,
)


def _size(*keys: str) -> Column:
    """How many entries there are in these maps."""

    def cell(obj: Object, _: datetime) -> int:
        found = (at(obj, key) for key in keys)
        return sum(len(data) for data in found if isinstance(data, dict))

    return Column("Data", cell)


CONFIG_MAPS = (NAME, _size("data", "binaryData"), AGE)
SECRETS = (NAME, field("Type", "type"), _size("data"), AGE)
LEASES = (NAME, field("Holder", "spec", "holderIdentity"), AGE)
PRIORITY_CLASSES = (
    NAME,
    number("Value", "value"),
    boolean("Global-Default", "globalDefault"),
    AGE,
    field("PreemptionPolicy", "preemptionPolicy"),
)
DEFINITIONS = (NAME, Column("Created At", lambda obj, _: at(obj, "metadata", "creationTimestamp"), "date"))


# -- services ---------------------------------------------------------------------------------------------------------


def _cluster_address(service: Object, _: datetime) -> str:
    return listed(service, "spec", "clusterIPs").partition(",")[0] or word(service, "spec", "clusterIP", otherwise=NONE)


def _external_address(service: Object, _: datetime) -> str:
    kind, outside = word(service, "spec", "type"), listed(service, "spec", "externalIPs")
    if kind == "ExternalName":
        return word(service, "spec", "externalName")
    if kind != "LoadBalancer":
        return outside or NONE
    balanced = each(service, "status", "loadBalancer", "ingress")
    addresses = [word(one, "ip") or word(one, "hostname") for one in balanced]
    return ",".join(filter(None, [*addresses, outside])) or "<pending>"


def _ports(service: Object, _: datetime) -> str:
    ports = []
    for port in each(service, "spec", "ports"):
        node_port = f":{count(port, 'nodePort')}" if count(port, "nodePort") else ""
        ports.append(f"{count(port, 'port')}{node_port}/{word(port, 'protocol')}")
    return ",".join(ports) or NONE


SERVICES = (
    NAME,
    field("Type", "spec", "type"),
    Column("Cluster-IP", _cluster_address),
    Column("External-IP", _external_address),
    Column("Port(s)", _ports),
    AGE,
    Column("Selector", lambda service, _: labels(at(service, "spec", "selector")), priority=1),
)


# -- events, in the old shape and the new -----------------------------------------------------------------------------


def _first_seen(event: Object, now: datetime) -> str:
    first = at(event, "firstTimestamp") or at(event, "deprecatedFirstTimestamp") or at(event, "eventTime")
    return since(first, now)


def _last_seen(event: Object, now: datetime) -> str:
    series = at(event, "series", "lastObservedTime")
    last = series or at(event, "lastTimestamp") or at(event, "deprecatedLastTimestamp")
    return since(last, now) if last else _first_seen(event, now)


def _times(event: Object, _: datetime) -> str:
    seen = count(event, "series", "count") or count(event, "count") or count(event, "deprecatedCount")
    return str(seen or 1)


def _about(event: Object) -> Object:
    found = at(event, "involvedObject") or at(event, "regarding")
    return found if isinstance(found, dict) else {}


def _object(event: Object, _: datetime) -> str:
    about = _about(event)
    kind, name = word(about, "kind").lower(), word(about, "name")
    return f"{kind}/{name}" if name else kind


def _source(event: Object, _: datetime) -> str:
    old = at(event, "source") or at(event, "deprecatedSource")
    component = word(old, "component") or word(event, "reportingComponent") or word(event, "reportingController")
    host = word(old, "host") or word(event, "reportingInstance")
    return f"{component}, {host}" if component and host else component


EVENTS = (
    Column("Last Seen", _last_seen),
    field("Type", "type"),
    field("Reason", "reason"),
    Column("Object", _object),
    Column("Subobject", lambda event, _: word(_about(event), "fieldPath"), priority=1),
    Column("Source", _source, priority=1),
    Column("Message", lambda event, _: (word(event, "message") or word(event, "note")).strip()),
    Column("First Seen", _first_seen, priority=1),
    Column("Count", _times, priority=1),
    Column("Name", NAME.cell, format="name", priority=1),
)


# -- devices ----------------------------------------------------------------------------------------------------------


def _claim_state(claim: Object, _: datetime) -> str:
    states = ["deleted"] if is_leaving(claim) else []
    if at(claim, "status", "allocation") is not None:
        states.append("allocated")
        if each(claim, "status", "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    field("Node", "spec", "nodeName"),
    field("Driver", "spec", "driver"),
    field("Pool", "spec", "pool", "name"),
    AGE,
)


_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"


def _status(node: Object, _: datetime) -> str:
    ready = [one for one in each(node, "status", "conditions") if one.get("type") == "Ready"]
    states = [("Ready" if ready[-1].get("status") == "True" else "NotReady") if ready else "Unknown"]
    if at(node, "spec", "unschedulable") is True:
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(node: Object, _: datetime) -> str:
    labels = at(node, "metadata", "labels")
    if not isinstance(labels, dict):
        return NONE
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    if named := word(labels, _OLD_ROLE):
        roles.add(named)
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Cell:
    def cell(node: Object, _: datetime) -> str:
        found = (word(one, "address") for one in each(node, "status", "addresses") if one.get("type") == kind)
        return next(found, NONE)

    return cell


def _kernel(node: Object, _: datetime) -> str:
    version, built_for = (word(node, "status", "nodeInfo", key) for key in ("kernelVersion", "architecture"))
    return f"{version or UNKNOWN} ({built_for})" if built_for else version or UNKNOWN


NODES = (
    NAME,
    Column("Status", _status, description="Whether the node is ready, and takes new pods."),
    Column("Roles", _roles, description="Roles of the node, from its labels."),
    AGE,
    field("Version", "status", "nodeInfo", "kubeletVersion"),
    Column("Internal-IP", _address("InternalIP"), priority=1),
    Column("External-IP", _address("ExternalIP"), priority=1),
    field("OS-Image", "status", "nodeInfo", "osImage", otherwise=UNKNOWN, priority=1),
    Column("Kernel-Version", _kernel, priority=1),
    field("Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", otherwise=UNKNOWN, priority=1),
)
NAMESPACES = (NAME, field("Status", "status", "phase"), AGE)

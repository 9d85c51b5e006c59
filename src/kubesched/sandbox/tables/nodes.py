"""How nodes and namespaces are shown."""

from __future__ import annotations

from datetime import datetime

from kubesched.api.kinds import Object
from kubesched.sandbox.tables.ages import UNKNOWN
from kubesched.sandbox.tables.column import AGE, NAME, NONE, Cell, Column, at, each, field, word

_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"


def _status(node: Object, _: datetime) -> str:
    ready = [one for one in each(node, "status", "conditions") if one.get("type") == "Ready"]
    told = [("Ready" if ready[-1].get("status") == "True" else "NotReady") if ready else "Unknown"]
    if at(node, "spec", "unschedulable") is True:
        told.append("SchedulingDisabled")
    return ",".join(told)


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


COLUMNS = (
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

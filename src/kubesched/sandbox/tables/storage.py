"""How volumes, claims, classes and drivers are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubesched.api.kinds import Object
from kubesched.api.well_known import DEFAULT_STORAGE_CLASS, STORAGE_CLASS
from kubesched.sandbox.tables.column import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    at,
    boolean,
    each,
    field,
    is_leaving,
    listed,
    word,
)

_UNSET = "<unset>"
_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Any) -> str:
    """Access modes in short, in the order in which kubectl has them."""
    return ",".join(short for mode, short in _SHORT.items() if isinstance(modes, list) and mode in modes)


def _phase(obj: Object, _: datetime) -> str:
    return "Terminating" if is_leaving(obj) else word(obj, "status", "phase")


def _class(obj: Object, _: datetime) -> str:
    return word(obj, "metadata", "annotations", STORAGE_CLASS) or word(obj, "spec", "storageClassName")


def _if_bound(cell: Cell) -> Cell:
    """A claim has the size and modes of its volume, once it has one."""
    return lambda claim, now: cell(claim, now) if word(claim, "spec", "volumeName") else ""


def _claimed_by(volume: Object, _: datetime) -> str:
    claim = at(volume, "spec", "claimRef")
    return f"{word(claim, 'namespace')}/{word(claim, 'name')}" if isinstance(claim, dict) else ""


_ATTRIBUTES = field("VolumeAttributesClass", "spec", "volumeAttributesClassName", otherwise=_UNSET)
_MODE = field("VolumeMode", "spec", "volumeMode", otherwise=_UNSET, priority=1)

CLAIMS = (
    NAME,
    Column("Status", _phase),
    field("Volume", "spec", "volumeName"),
    Column("Capacity", _if_bound(lambda claim, _: word(claim, "status", "capacity", "storage", otherwise="0"))),
    Column("Access Modes", _if_bound(lambda claim, _: _modes(at(claim, "status", "accessModes")))),
    Column("StorageClass", _class),
    _ATTRIBUTES,
    AGE,
    _MODE,
)
VOLUMES = (
    NAME,
    field("Capacity", "spec", "capacity", "storage", otherwise="0"),
    Column("Access Modes", lambda volume, _: _modes(at(volume, "spec", "accessModes"))),
    field("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
    Column("Status", _phase),
    Column("Claim", _claimed_by),
    Column("StorageClass", _class),
    _ATTRIBUTES,
    field("Reason", "status", "reason"),
    AGE,
    _MODE,
)


# -- classes and drivers ----------------------------------------------------------------------------------------------


def _class_name(storage_class: Object, _: datetime) -> str:
    name = word(storage_class, "metadata", "name")
    return (
        f"{name} (default)" if word(storage_class, "metadata", "annotations", DEFAULT_STORAGE_CLASS) == "true" else name
    )


def _audiences(driver: Object, _: datetime) -> str:
    requests = each(driver, "spec", "tokenRequests")
    return ",".join(word(request, "audience") for request in requests) if requests else _UNSET


CLASSES = (
    Column("Name", _class_name, format="name", description="Name of the class, and whether it is the default."),
    field("Provisioner", "provisioner"),
    field("ReclaimPolicy", "reclaimPolicy", otherwise="Delete"),
    field("VolumeBindingMode", "volumeBindingMode", otherwise="Immediate"),
    Column("AllowVolumeExpansion", lambda obj, _: at(obj, "allowVolumeExpansion") is True),
    AGE,
)
CSI_NODES = (NAME, Column("Drivers", lambda node, _: len(each(node, "spec", "drivers")), "integer"), AGE)
CSI_DRIVERS = (
    NAME,
    boolean("AttachRequired", "spec", "attachRequired", otherwise=True),
    boolean("PodInfoOnMount", "spec", "podInfoOnMount"),
    boolean("StorageCapacity", "spec", "storageCapacity"),
    Column("TokenRequests", _audiences),
    boolean("RequiresRepublish", "spec", "requiresRepublish"),
    Column("Modes", lambda driver, _: listed(driver, "spec", "volumeLifecycleModes") or NONE),
    AGE,
)
CSI_CAPACITIES = (NAME, field("StorageClassName", "storageClassName"), field("Capacity", "capacity", otherwise=_UNSET))
ATTACHMENTS = (
    NAME,
    field("Attacher", "spec", "attacher"),
    field("PV", "spec", "source", "persistentVolumeName"),
    field("Node", "spec", "nodeName"),
    boolean("Attached", "status", "attached"),
    AGE,
)

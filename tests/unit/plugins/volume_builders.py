"""Small builders for the tests of the volume plugins: claims, volumes, classes and drivers in a line each."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, Volume
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.status import Status
from kubesched.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_restrictions import VolumeRestrictions
from kubesched.plugins.volume_zone import VolumeZone
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

BIND_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}

Json = dict[str, Any]


VolumePlugin = VolumeRestrictions | NodeVolumeLimits | VolumeBinding | VolumeZone


def make(kind: str, name: str, *, namespace: str = "", **fields: Any) -> Any:
    """Any object, in the words of its manifest. Metadata other than the name goes into `metadata`."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **fields.pop("metadata", {})}
    return msgspec.convert({"kind": kind, "metadata": metadata, **fields}, KINDS[kind].record)


def node(name: str, labels: dict[str, str] | None = None) -> KubeObject:
    return make_node(name).label(labels).build()


def pod(name: str = "p", *volumes: Json, claims: tuple[str, ...] = (), on: str = "") -> Pod:
    """A pod with these claims and then these volumes, placed if a node is named."""
    named = [{"persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    listed = [{"name": f"v{i}", **volume} for i, volume in enumerate((*named, *volumes))]
    return make_pod(name, uid=f"uid-{name}").spec(volumes=msgspec.convert(listed, tuple[Volume, ...])).on(on).build()


def claim(name: str, *, volume: str = "", bound: bool | None = None, size: str = "5Gi", **spec: Any) -> KubeObject:
    """A claim; one that names a volume is bound unless told otherwise."""
    is_bound = bool(volume) if bound is None else bound
    made: KubeObject = make(
        "PersistentVolumeClaim",
        name,
        namespace="default",
        metadata={"annotations": BIND_COMPLETED if is_bound else {}},
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "volumeName": volume,
            **spec,
        },
    )
    return made


def volume(
    name: str, *, size: str = "10Gi", on: Json | None = None, labels: Json | None = None, **spec: Any
) -> KubeObject:
    """A free volume; `on` are the labels of the nodes it can be reached from."""
    affinity = [{"key": key, "operator": "In", "values": values} for key, values in (on or {}).items()]
    required = {"required": {"nodeSelectorTerms": [{"matchExpressions": affinity}]}} if on else None
    made: KubeObject = make(
        "PersistentVolume",
        name,
        metadata={"labels": labels or {}},
        spec={
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            **({"nodeAffinity": required} if required else {}),
            **spec,
        },
        status={"phase": "Available"},
    )
    return made


def csi_volume(name: str, driver: str = "csi.example.com", **more: Any) -> KubeObject:
    return volume(name, csi={"driver": driver, "volumeHandle": f"handle-{name}"}, **more)


def storage_class(name: str, *, provisioner: str = "csi.example.com", waits: bool = True, **fields: Any) -> KubeObject:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    made: KubeObject = make("StorageClass", name, provisioner=provisioner, volumeBindingMode=mode, **fields)
    return made


def csi_node(name: str, limits: dict[str, int] | None = None, *, migrated: str = "") -> KubeObject:
    drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": n}} for driver, n in (limits or {}).items()]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    made: KubeObject = make("CSINode", name, metadata={"annotations": annotations}, spec={"drivers": drivers})
    return made


def rejections(plugin: FilterPlugin, cycle: Cycle) -> dict[str, tuple[str, ...]]:
    """The reasons for which nodes are rejected, asked about all rows and, as a check, about each row alone."""
    state = cycle.state
    together = plugin.filter(cycle, Nodes(state))
    found: dict[str, tuple[str, ...]] = {}
    for row in np.flatnonzero(state.nodes.live[: state.nodes.size]).tolist():
        alone = plugin.filter(cycle, Nodes(state, np.array([row])))
        assert alone[0] == together[row]
        status = plugin.rejections.statuses[together[row]]
        if status is not None:
            found[state.nodes.names[row]] = status.reasons
    return found


def ask(plugin: VolumePlugin, state: ClusterState, pending: Pod) -> Status | dict[str, tuple[str, ...]] | None:
    """What pre_filter says if it does not go on, else what filter says."""
    cycle = Cycle(pending, state)
    answer = plugin.pre_filter(cycle)
    return rejections(plugin, cycle) if answer is None else answer

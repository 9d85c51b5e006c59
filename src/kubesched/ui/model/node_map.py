"""The node map: all nodes as packed columns, and which of them changed since."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kubesched.api.node import Node
from kubesched.api.requests import PODS
from kubesched.api.well_known import ZONE
from kubesched.state.changes import ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Rows

UInt8 = npt.NDArray[np.uint8]

FULL = 200
"""The byte that stands for all of a resource being requested; a node can have promised more than it has."""
NOT_OFFERED = 255

LIVE, CORDONED, TAINTED, NOT_READY = 1, 2, 4, 8

_OWN_TAINTS = "node.kubernetes.io/"
"""Taints that only repeat what another flag says."""
_MOST_VALUES = 400
_MOST_KEYS = 40
_MOST_CHANGED = 4_000
_NEW_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_POOLS = ("nodepool", "node-pool", "nodegroup", "node-group", "pool", "instance-type")


Version = tuple[int, int]
"""Positions in the logs of all changes and of changes of node objects."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Some rows: bytes per resource, in base64, and flags."""

    shares: dict[str, str]
    flags: str
    pods: str
    """Numbers of pods, 16 bits each, little endian."""


@dataclass(frozen=True, slots=True)
class NodeMap:
    """All rows of the node table, in its order. Rows that are not live are holes."""

    version: Version
    group_by: str
    names: list[str]
    groups: list[str]
    """The group of each row: a value of the label, or empty."""
    columns: Columns


@dataclass(frozen=True, slots=True)
class MapChanges:
    """What is different since an earlier version. `renamed` has names and groups of rows whose node object changed."""

    version: Version
    rows: list[int]
    columns: Columns
    renamed: dict[int, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LabelKey:
    """A label by which nodes can be grouped."""

    key: str
    nodes: int
    values: int


class NodeMapModel:
    """Reads the node table of a state. What it keeps about node objects is brought up to date when it is asked."""

    def __init__(self, state: ClusterState) -> None:
        self._table = state.nodes
        self._reader: ChangeReader[int] = ChangeReader(state.nodes.object_changes)
        self._flags: UInt8 = np.zeros(0, dtype=np.uint8)

    @property
    def version(self) -> Version:
        return self._table.changes.position, self._table.object_changes.position

    def whole(self, group_by: str) -> NodeMap:
        """Everything there is to draw."""
        self._refresh()
        rows = np.arange(self._table.size)
        groups = [self._group(row, group_by) for row in range(self._table.size)]
        return NodeMap(self.version, group_by, list(self._table.names), groups, self._columns(rows))

    def since(self, version: Version, group_by: str) -> MapChanges | None:
        """What changed since; None if that is so much, or so long ago, that the whole is the better answer."""
        changed = self._table.changes.since(version[0])
        objects = self._table.object_changes.since(version[1])
        if changed is None or objects is None or len(changed) > _MOST_CHANGED or version > self.version:
            return None
        self._refresh()
        renamed = {row: (self._table.names[row], self._group(row, group_by)) for row in objects}
        return MapChanges(self.version, changed, self._columns(np.array(changed, dtype=np.intp)), renamed)

    def label_keys(self) -> list[LabelKey]:
        """By what nodes can be grouped: zones and pools first, then labels that tell some of them apart."""
        values: dict[str, Counter[str]] = {}
        for node in filter(None, self._table.nodes):
            for key, value in node.metadata.labels.items():
                counts = values.setdefault(key, Counter())
                if len(counts) <= _MOST_VALUES:
                    counts[value] += 1
        live = sum(node is not None for node in self._table.nodes)
        keys = [
            LabelKey(key, sum(counts.values()), len(counts))
            for key, counts in values.items()
            if len(counts) <= _MOST_VALUES and _tells_apart(key, counts, live) and not _is_old_name(key, values)
        ]
        keys.sort(key=lambda label: (_rank(label), -label.nodes, label.key))
        return keys[:_MOST_KEYS]

    def summary(self) -> dict[str, int]:
        """How many nodes there are, and in what condition."""
        self._refresh()
        flags = self._flags[self._table.live[: len(self._flags)]]
        bits = {"cordoned": CORDONED, "tainted": TAINTED, "notReady": NOT_READY}
        return {"nodes": len(flags), **{name: int(np.count_nonzero(flags & bit)) for name, bit in bits.items()}}

    def _group(self, row: int, key: str) -> str:
        node = self._table.nodes[row]
        return node.metadata.labels.get(key, "") if node is not None and key else ""

    def _refresh(self) -> None:
        """Bring the flags up to date."""
        changed = self._reader.read()
        size = self._table.size
        if changed is None or len(self._flags) > size:
            changed = list(range(size))
        if len(self._flags) < size:
            new = list(range(len(self._flags), size))
            self._flags = np.concatenate((self._flags, np.zeros(len(new), dtype=np.uint8)))
            changed = sorted({*changed, *new})
        for row in changed:
            node = self._table.nodes[row]
            self._flags[row] = 0 if node is None else flags_of(node)

    def _columns(self, rows: Rows) -> Columns:
        table = self._table
        shares = {
            name: _packed(_shares(table.requested[i, rows], table.allocatable[i, rows]))
            for name, i in table.resources.items()
            if table.allocatable[i, : table.size].any()
        }
        shares[PODS] = _packed(_shares(table.pod_count[rows], table.allowed_pods[rows]))
        pods = np.minimum(table.pod_count[rows], 0xFFFF).astype("<u2")
        return Columns(shares, _packed(self._flags[rows]), base64.b64encode(pods.tobytes()).decode())


def flags_of(node: Node) -> int:
    """What is wrong with a node, at a glance."""
    flags = LIVE
    if node.spec.unschedulable:
        flags |= CORDONED
    ready = next((condition.status for condition in node.status.conditions if condition.type == "Ready"), "True")
    if ready != "True":
        flags |= NOT_READY
    for taint in node.spec.taints:
        if taint.key in (f"{_OWN_TAINTS}not-ready", f"{_OWN_TAINTS}unreachable"):
            flags |= NOT_READY
        elif taint.effect != "PreferNoSchedule" and taint.key != f"{_OWN_TAINTS}unschedulable":
            flags |= TAINTED
    return flags


def _tells_apart(key: str, counts: Counter[str], nodes: int) -> bool:
    """Whether a label makes groups: not one of all nodes, nor one for every node."""
    return key == ZONE or ((len(counts) > 1 or 0 < counts.total() < nodes) and (len(counts) < nodes or nodes < 3))


def _is_old_name(key: str, labels: Mapping[str, object]) -> bool:
    """Whether another label says the same under the name that it has today."""
    new = _NEW_NAMES.get(key) or key.removeprefix("beta.")
    return new != key and new in labels


def _rank(label: LabelKey) -> int:
    if label.key == ZONE:
        return 0
    if any(part in label.key for part in _POOLS):
        return 1
    return 2 if label.values > 1 else 3


def _shares(requested: npt.NDArray[np.int64], allocatable: npt.NDArray[np.int64]) -> UInt8:
    offered = allocatable > 0
    scaled = np.minimum(-(-requested * FULL // np.maximum(allocatable, 1)), NOT_OFFERED - 1)
    return np.where(offered, scaled, NOT_OFFERED).astype(np.uint8)


def _packed(column: UInt8) -> str:
    return base64.b64encode(column.tobytes()).decode()

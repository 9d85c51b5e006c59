"""The node table: a row per node, a column per fact about the node object and its pods; images, and the order.

A row belongs to one node until the node and all its pods are gone. A node that vanishes before its pods keeps its row
as a ghost: its pods count, but it is not `live`, so no decision sees it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import chain, zip_longest

import numpy as np

from kubesched.api.node import ContainerImage, Node, Taint
from kubesched.api.quantity import QuantityText, parse_quantity
from kubesched.api.requests import PODS, is_countable, whole
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.state.changes import ChangeLog
from kubesched.state.columns import Bool, Int32, Int64, Interner, LabelColumn, grown
from kubesched.state.resources import ResourceColumns

_FIRST_ROWS = 64


class NodeTable(ResourceColumns):
    """All nodes, as columns. Only the cluster state writes here."""

    def __init__(self) -> None:
        super().__init__(_FIRST_ROWS)
        self.size = 0
        self.live_count = 0
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.row_of: dict[str, int] = {}
        self.labels: dict[str, LabelColumn] = {}
        """The columns of label keys that `label` was asked for and some node has."""
        self._label_uses: dict[str, int] = {}
        """How many nodes have each label key."""
        self.label_keys_version = 0
        """Grows when the first node gets a label key, or the last one loses it."""
        self._no_label = LabelColumn("", _FIRST_ROWS)
        self.taint_lists: Interner[tuple[Taint, ...]] = Interner()
        self.images = ImageIndex()
        self.order = NodeOrder()
        self.object_changes: ChangeLog[int] = ChangeLog()
        """Rows whose node object changed."""
        self.total_changes: ChangeLog[int] = ChangeLog()
        """Rows where the node object changed, or what its pods use of it. Not if the watch shows a pod anew, as it does
        after each binding: else answers cached by totals would be repaired twice for every pod."""
        self.changes: ChangeLog[int] = ChangeLog()
        """Rows where anything changed: the node object or the pods on it."""
        self.live: Bool = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self.allowed_pods: Int64 = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.pod_count: Int64 = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.unschedulable: Bool = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self.taint_ids: Int32 = np.full(_FIRST_ROWS, -1, dtype=np.int32)
        self._free_rows: list[int] = []

    # -- rows ---------------------------------------------------------------------------------------------------------

    def ensure_row(self, name: str) -> int:
        """The row of this name; a new ghost if there is none."""
        row = self.row_of.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = self.size
            if row == len(self.live):
                self._extend(2 * row)
            self.size += 1
            self.names.append(name)
            self.nodes.append(None)
        self.row_of[name] = row
        self._changed(row)
        return row

    def release_row_if_unused(self, row: int) -> None:
        """Give the row back when neither a node nor a pod is on it."""
        if self.live[row] or self.pod_count[row]:
            return
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self._free_rows.append(row)

    def set_node(self, node: Node) -> int:
        """A node arrived or changed. QuantityError, and no change, if an amount that it offers is no quantity."""
        known_row = self.row_of.get(node.name)
        if known_row is not None and (known := self.nodes[known_row]) is not None and node.only_version_differs(known):
            # Each node reports every few minutes that it is there, and when volumes are attached to it. With thousands
            # of nodes one has nearly always just done so, and plugins would be asked for all columns anew.
            self.nodes[known_row] = node
            return known_row
        offered = _offered_by(node)
        row = self.ensure_row(node.name)
        if not self.live[row]:
            self.live[row] = True
            self.live_count += 1
        self._write(row, node, offered)
        self.order.put(node)
        if row == known_row:  # a row that was made has been recorded
            self._changed(row)
        return row

    def remove_node(self, name: str) -> None:
        """A node is gone; its row stays while pods are on it."""
        row = self.row_of.get(name)
        if row is None or not self.live[row]:
            return
        self._write(row, None, {})
        self.live[row] = False
        self.live_count -= 1
        self.order.discard(name)
        self._changed(row)
        self.release_row_if_unused(row)

    def node(self, row: int) -> Node:
        """The node object of a live row."""
        node = self.nodes[row]
        assert node is not None, f"row {row} is not live"
        return node

    # -- columns ------------------------------------------------------------------------------------------------------

    def label(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use and kept up to date while a node has the label.

        All keys that no node has share one column without values.
        """
        column = self.labels.get(key)
        if column is None:
            if key not in self._label_uses:
                return self._no_label
            column = self.labels[key] = LabelColumn(key, len(self.live))
            for row, node in enumerate(self.nodes):
                if node is not None and key in node.metadata.labels:
                    column.set(row, node.metadata.labels[key])
        return column

    def has_label(self, key: str) -> bool:
        """Whether any node has the label."""
        return key in self._label_uses

    @property
    def label_keys(self) -> Collection[str]:
        """The keys of labels that some node has."""
        return self._label_uses.keys()

    def load_changed(self, row: int) -> None:
        """Pods came to or left this row, or what they use of it changed."""
        self.total_changes.record(row)
        self.changes.record(row)

    def pods_changed(self, row: int) -> None:
        """Pods on this row changed, but not what they use of it."""
        self.changes.record(row)

    def _write(self, row: int, node: Node | None, offered: dict[str, int]) -> None:
        old = self.nodes[row]
        self.nodes[row] = node
        self._relabel(row, old.metadata.labels if old else {}, node.metadata.labels if node else {})
        self.allowed_pods[row] = offered.pop(PODS, 0)
        if old is None or node is None or old.status.allocatable != node.status.allocatable:
            self.offer(row, old, offered)
        self.unschedulable[row] = node is not None and node.spec.unschedulable
        old_taints = int(self.taint_ids[row])
        self.taint_ids[row] = self.taint_lists.acquire(node.spec.taints) if node else -1
        self.taint_lists.release(old_taints)
        self.images.replace(row, old.status.images if old else (), node.status.images if node else ())

    def _relabel(self, row: int, old: dict[str, str], new: dict[str, str]) -> None:
        if old == new:
            return
        uses = self._label_uses
        self.label_keys_version += not new.keys() <= uses.keys()
        for key in new:
            uses[key] = uses.get(key, 0) + 1
        for key in self.labels.keys() & (old.keys() | new.keys()):
            self.labels[key].set(row, new.get(key))
        for key in old:
            uses[key] -= 1
            if not uses[key]:
                del uses[key]
                self.labels.pop(key, None)
                self.label_keys_version += 1

    def _changed(self, row: int) -> None:
        self.object_changes.record(row)
        self.load_changed(row)

    def all_changed(self) -> None:
        """Something changed that all rows depend on."""
        for log in (self.object_changes, self.total_changes, self.changes):
            log.all_changed()

    def _extend(self, length: int) -> None:
        self.live = grown(self.live, length)
        self.extend_resources(length)
        self.allowed_pods = grown(self.allowed_pods, length)
        self.pod_count = grown(self.pod_count, length)
        self.unschedulable = grown(self.unschedulable, length)
        self.taint_ids = grown(self.taint_ids, length, -1)
        for column in (self._no_label, *self.labels.values()):
            column.extend(length)


def _offered_by(node: Node) -> dict[str, int]:
    """The resources that the node offers, and how much of each."""
    offers = node.status.allocatable.items()
    return {name: amount for name, text in offers if (amount := _amount(name, text)) is not None}


@lru_cache(maxsize=4096)
def _amount(name: str, text: QuantityText) -> int | None:
    """How much of a resource is offered; None if it does not count. Cached: nodes of one type offer the same."""
    return whole(name, parse_quantity(text)) if name == PODS or is_countable(name) else None


class Image:
    """An image under one name: its size as first reported, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class ImageIndex:
    """All images on all nodes. `version` changes with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def replace(self, row: int, old: tuple[ContainerImage, ...], new: tuple[ContainerImage, ...]) -> None:
        """The images on a row changed."""
        if old == new:
            return
        self.version += 1
        for name in {name for image in old for name in image.names}:
            image = self._images[name]
            image.rows.discard(row)
            if not image.rows:
                del self._images[name]
        for entry in new:
            for name in entry.names:
                image = self._images.get(name) or self._images.setdefault(name, Image(entry.size_bytes))
                image.rows.add(row)


class NodeOrder:
    """The order in which nodes are looked at when not all of them are: zones take turns, as in kube-scheduler."""

    def __init__(self) -> None:
        self._zones: dict[tuple[str, str], dict[str, None]] = {}
        self._zone_of: dict[str, tuple[str, str]] = {}
        self._names: list[str] | None = None
        self._shared: set[tuple[str, str]] = set()
        """Zones whose dictionaries another order has, too."""

    def put(self, node: Node) -> None:
        """A node arrived, or may have moved to another zone."""
        zone = _zone(node)
        if self._zone_of.get(node.name) == zone:
            return
        self.discard(node.name)
        self._zone_of[node.name] = zone
        self._unshare(zone)
        self._zones.setdefault(zone, {})[node.name] = None

    def discard(self, name: str) -> None:
        self._names = None
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            self._unshare(zone)
            del self._zones[zone][name]
            if not self._zones[zone]:
                del self._zones[zone]

    def _unshare(self, zone: tuple[str, str]) -> None:
        if zone in self._shared:
            self._shared.remove(zone)
            self._zones[zone] = dict(self._zones[zone])

    def for_a_while(self) -> NodeOrder:
        """A copy to change for a while; in the end the same nodes must be in the same zones.

        Only zones in which something changes are copied.
        """
        copy = NodeOrder()
        copy._zones, copy._zone_of, copy._names = dict(self._zones), self._zone_of, self._names
        copy._shared = set(self._zones)
        return copy

    def names(self) -> list[str]:
        """One node of each zone in turn."""
        if self._names is None:
            rounds = zip_longest(*self._zones.values())
            self._names = [name for name in chain.from_iterable(rounds) if name is not None]
        return self._names


def _zone(node: Node) -> tuple[str, str]:
    labels = node.metadata.labels
    return labels.get(BETA_REGION, labels.get(REGION, "")), labels.get(BETA_ZONE, labels.get(ZONE, ""))

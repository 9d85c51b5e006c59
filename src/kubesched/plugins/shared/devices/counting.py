"""How many devices of a class each node can use, and how many of them are in use: what scoring goes by.

As in kube-scheduler every device counts that is published for a node, whether or not a search would take it: also of
pools that are incomplete or are being replaced, with taints, or with no counters left to draw from.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kubesched.api.devices import Device, DeviceClass, ResourceSlice
from kubesched.framework.nodes import Nodes
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.device_equivalence import DeviceEquivalence
from kubesched.plugins.shared.devices.device_kinds import DeviceKind, DeviceKinds
from kubesched.plugins.shared.devices.pools import PoolId, Reach, SliceIndex
from kubesched.plugins.shared.devices.selecting import DeviceSelection
from kubesched.state.changes import ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int64

_MOST_ANSWERS = 1 << 12


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class _Portion:
    """Devices of one slice that the same nodes can use. Compared by identity."""

    pool: PoolId
    reach: Reach
    devices: tuple[tuple[str, DeviceKind], ...]
    """By name, of the kind that scoring takes them for."""

    @property
    def local_to(self) -> str:
        """The only node that can use them; empty if there may be several."""
        return self.reach.node_name


class _Touched(NamedTuple):
    """What may have made a difference since the last count."""

    rows: set[int] | None
    """Rows whose nodes changed; None for all."""
    portions: list[_Portion]
    """Portions that came or went, or of which devices were taken or given back."""


class ClassCount:
    """Per row the devices of one class: how many there are, and how many of those are in use."""

    def __init__(self, selection: DeviceSelection) -> None:
        self.capacity: Int64 = np.zeros(0, dtype=np.int64)
        self.in_use: Int64 = np.zeros(0, dtype=np.int64)
        self._selection = selection
        self._likeness = DeviceEquivalence(selection.names)
        self._answers: dict[int, bool | str] = {}
        self._selected: weakref.WeakKeyDictionary[_Portion, tuple[str, ...] | None] = weakref.WeakKeyDictionary()

    def selected(self, portion: _Portion) -> tuple[str, ...] | None:
        """The devices that are of the class, by name; None if a selector breaks on one."""
        if portion not in self._selected:
            self._selected[portion] = self._select(portion)
        return self._selected[portion]

    def concerns(self, portion: _Portion) -> bool:
        return self.selected(portion) != ()

    def set(self, row: int, capacity: int, in_use: int) -> bool:
        """Whether that is something new."""
        if self.capacity[row] == capacity and self.in_use[row] == in_use:
            return False
        self.capacity[row], self.in_use[row] = capacity, in_use
        return True

    def extend(self, size: int) -> None:
        more = np.zeros(max(0, size - len(self.capacity)), dtype=np.int64)
        self.capacity = np.concatenate((self.capacity, more))
        self.in_use = np.concatenate((self.in_use, more))

    def _select(self, portion: _Portion) -> tuple[str, ...] | None:
        names: list[str] = []
        for name, kind in portion.devices:
            answer = self._judge(kind)
            if answer is True:
                names.append(name)
            elif answer is not False:
                return None
        return tuple(names)

    def _judge(self, kind: DeviceKind) -> bool | str:
        number = self._likeness.number_of(kind)
        answer = self._answers.get(number)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[number] = self._selection.judge(kind)
        return answer


class DeviceCounts:
    """The counts of all classes that scores were asked about; profiles share them.

    Once there are any they are followed before each attempt, and rows with new numbers are recorded as changed, so
    that scores which are kept are repaired there.
    """

    def __init__(self, state: ClusterState) -> None:
        view = state.companion(ClusterDevices)
        self._state = state
        self._ledger = view.ledger
        self._selectors = view.selectors
        self._kinds = DeviceKinds()
        self._counts: dict[str, ClassCount] = {}
        self._slices = SliceIndex(state.objects, self._portions)
        self._node_changes = ChangeReader(state.nodes.object_changes)
        self._use_changes = ChangeReader(view.ledger.changes)
        self._class_version = 0
        state.followers.append(self.follow)

    def of(self, device_class: DeviceClass) -> ClassCount:
        """The count of a class, up to date."""
        self.follow()
        count = self._counts.get(device_class.name)
        if count is None:
            self._class_version = self._state.objects.version(DeviceClass)
            self._catch_up()
            count = self._counts[device_class.name] = ClassCount(self._selectors.of(device_class, ()))
            self._count_everywhere(count)
        return count

    def follow(self) -> None:
        """Count again where slices, nodes or the use of devices have changed."""
        if not self._counts:
            return
        if self._class_version != self._state.objects.version(DeviceClass):
            self._counts.clear()  # whatever was kept for any row went with the old classes
            return
        touched = self._catch_up()
        if touched.rows or touched.portions or touched.rows is None:
            for count in self._counts.values():
                self._update(count, touched)

    # -- counting -----------------------------------------------------------------------------------------------------

    def _update(self, count: ClassCount, touched: _Touched) -> None:
        table = self._state.nodes
        count.extend(table.size)
        portions = [portion for portion in touched.portions if count.concerns(portion)]
        if touched.rows is None or not all(portion.local_to for portion in portions):
            changed = self._count_everywhere(count)
        else:
            names = (portion.local_to for portion in portions)
            rows = touched.rows | {table.row_of[name] for name in names if name in table.row_of}
            changed = [row for row in sorted(rows) if count.set(row, *self._count_at(count, row))]
        for row in changed:
            table.load_changed(row)

    def _count_everywhere(self, count: ClassCount) -> list[int]:
        """Count on all rows; returns those with new numbers."""
        table = self._state.nodes
        count.extend(table.size)
        before = count.capacity, count.in_use
        capacity, in_use, is_broken = [0] * table.size, [0] * table.size, [False] * table.size
        for name, portions in self._slices.local.items():
            row = table.row_of.get(name)
            if row is not None:
                for portion in portions:
                    selected = count.selected(portion)
                    is_broken[row] |= selected is None
                    capacity[row] += len(selected or ())
                    in_use[row] += self._in_use(portion, selected or ())
        count.capacity, count.in_use = np.array(capacity, dtype=np.int64), np.array(in_use, dtype=np.int64)
        is_counted = table.live[: table.size] & ~np.array(is_broken, dtype=np.bool_)
        nodes = Nodes(self._state)
        for portion in self._slices.wide:
            if count.concerns(portion):
                rows, selected = portion.reach.rows(nodes), count.selected(portion)
                if selected is None:
                    is_counted[rows] = False
                else:
                    count.capacity[rows] += len(selected)
                    count.in_use[rows] += self._in_use(portion, selected)
        count.capacity *= is_counted
        count.in_use *= is_counted
        changed: list[int] = np.flatnonzero((count.capacity != before[0]) | (count.in_use != before[1])).tolist()
        return changed

    def _count_at(self, count: ClassCount, row: int) -> tuple[int, int]:
        """Capacity and use on one row: none at all if a selector breaks on a device within reach."""
        node = self._state.nodes.nodes[row]
        if node is None:
            return 0, 0
        capacity = in_use = 0
        wide = (portion for portion in self._slices.wide if count.concerns(portion) and portion.reach.includes(node))
        for portion in (*self._slices.local.get(node.name, ()), *wide):
            selected = count.selected(portion)
            if selected is None:
                return 0, 0
            capacity += len(selected)
            in_use += self._in_use(portion, selected)
        return capacity, in_use

    def _in_use(self, portion: _Portion, names: tuple[str, ...]) -> int:
        """How many of the devices are in use. A claim with a share of a device counts as if it had all of it."""
        use = self._ledger.use_of(portion.pool)
        return sum(map(use.is_allocated, names))

    # -- what changed -------------------------------------------------------------------------------------------------

    def _catch_up(self) -> _Touched:
        self._ledger.refresh()
        portions, rows, pools = self._slices.follow(), self._node_changes.read(), self._use_changes.read()
        portions += (portion for pool in pools or () for portion in self._slices.of_pool.get(pool, ()))
        return _Touched(None if rows is None or pools is None else set(rows), portions)

    def _portions(self, slice_: ResourceSlice) -> list[_Portion]:
        spec = slice_.spec
        pool = (spec.driver, spec.pool.name)
        if spec.per_device_node_selection:
            return [_Portion(pool, Reach(device), (self._as_scored(spec.driver, device),)) for device in spec.devices]
        return [_Portion(pool, Reach(spec), tuple(self._as_scored(spec.driver, device) for device in spec.devices))]

    def _as_scored(self, driver: str, device: Device) -> tuple[str, DeviceKind]:
        """Scoring tells selectors nothing of a device but attributes and capacity; so to them none is shared."""
        scored = Device(attributes=device.attributes, capacity=device.capacity)
        return device.name, self._kinds.of(driver, scored)

"""Pools of devices as they are seen from one node: which slices count, and whether they make a whole.

Only the newest generation among the slices that a node can use counts. A pool of which slices are missing is
incomplete, one whose slices contradict each other is invalid; no device is taken from either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from kubesched.api.devices import Device, ResourceSlice, ResourceSliceSpec
from kubesched.api.node import Node
from kubesched.api.quantity import parse_quantity
from kubesched.api.selectors import NodeTerm, compile_node_selector, node_matches
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.framework.nodes import Nodes
from kubesched.plugins.shared.devices.device_kinds import CounterName, DeviceKind, DeviceKinds
from kubesched.state.changes import ChangeReader
from kubesched.state.objects import ObjectStore


class Reach:
    """The nodes that a slice names, or a device of one: one node, all of them, or those that a selector matches."""

    def __init__(self, source: ResourceSliceSpec | Device) -> None:
        selector = source.node_selector
        self.node_name = source.node_name or ""
        self._all_nodes = source.all_nodes
        self._terms: tuple[NodeTerm, ...] | None = None if selector is None else compile_node_selector(selector)

    @property
    def is_said(self) -> bool:
        return bool(self.node_name) or self._all_nodes or self._terms is not None

    def includes(self, node: Node) -> bool:
        if self.node_name:
            return node.name == self.node_name
        return self._all_nodes or (self._terms is not None and node_matches(self._terms, node))

    def rows(self, nodes: Nodes) -> list[int]:
        """All rows within reach."""
        if self.node_name:
            row = nodes.state.nodes.row_of.get(self.node_name)
            return [] if row is None else [row]
        if self._all_nodes:
            return list(range(len(nodes)))
        return [] if self._terms is None else np.flatnonzero(nodes.selected_by(self._terms)).tolist()


PoolId = tuple[str, str]
"""Driver and name of a pool."""


class Published(Protocol):
    """A slice, or a part of one. Compared by identity."""

    @property
    def pool(self) -> PoolId: ...

    @property
    def local_to(self) -> str:
        """The only node that can use it; empty if there may be several."""
        ...


P = TypeVar("P", bound=Published)


class SliceIndex(Generic[P]):
    """All that slices publish, by pool and by node, kept in step with the slices."""

    def __init__(self, objects: ObjectStore, publish: Callable[[ResourceSlice], Sequence[P]]) -> None:
        self.of_pool: dict[PoolId, dict[P, None]] = {}
        self.local: dict[str, dict[P, None]] = {}
        self.wide: dict[P, None] = {}
        """What more than one node may use."""
        self._of_slice: dict[str, Sequence[P]] = {}
        self._objects = objects
        self._publish = publish
        self._changes = ChangeReader(objects.changes(ResourceSlice))

    def follow(self, again: Iterable[str] = ()) -> list[P]:
        """Read the slices that have changed, and some again: what went with the old ones, and came with the new."""
        keys: Iterable[str] | None = self._changes.read()
        if keys is None:
            keys = sorted({*self._of_slice, *(slice_.key for slice_ in self._objects.all(ResourceSlice))})
        keys = dict.fromkeys((*keys, *again))
        touched: list[P] = []
        for key in keys:
            gone = self._of_slice.pop(key, ())
            for part in gone:
                self._forget(part)
            slice_ = self._objects.get(ResourceSlice, key)
            came = self._publish(slice_) if slice_ is not None else ()
            for part in came:
                self.of_pool.setdefault(part.pool, {})[part] = None
                self._home_of(part)[part] = None
            if came:
                self._of_slice[key] = came
            touched += (*gone, *came)
        return touched

    def _forget(self, part: P) -> None:
        """Groups go with their last member: nodes and pools come and go for ever."""
        of_pool, home = self.of_pool[part.pool], self._home_of(part)
        del of_pool[part], home[part]
        if not of_pool:
            del self.of_pool[part.pool]
        if not home:
            self.local.pop(part.local_to, None)

    def _home_of(self, part: P) -> dict[P, None]:
        return self.local.setdefault(part.local_to, {}) if part.local_to else self.wide


class Spot(NamedTuple):
    """A device in its place in the order of search."""

    device: Device
    kind: DeviceKind
    slice: ResourceSlice
    is_reachable: bool
    """Whether the node may use it, where that is said for each device rather than for the slice."""
    is_withheld: bool = False
    """Whether no claim gets it, since it has binding conditions and that feature is off."""

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and name of the device."""
        spec = self.slice.spec
        return spec.driver, spec.pool.name, self.device.name

    @property
    def alternative_nodes(self) -> int:
        """How many terms select its nodes, if that is more than one: an allocation cannot take those over.

        -1 if it ties an allocation to the one node: then nothing is taken over, of this device or later ones.
        """
        place = self.device if self.slice.spec.per_device_node_selection else self.slice.spec
        if place.node_name is not None or self.device.binds_to_node:
            return -1
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        return len(terms) if len(terms) > 1 else 0


@dataclass(frozen=True, eq=False, slots=True)
class DevicePool:
    """A pool as seen from some nodes. Compared by identity."""

    id: PoolId
    spots: tuple[Spot, ...] = ()
    counters: Mapping[CounterName, int] = field(default_factory=dict)
    elsewhere: tuple[tuple[str, DeviceKind], ...] = ()
    """Devices that only other nodes can use, but which draw from the same counters: names and kinds."""
    is_incomplete: bool = False
    fault: str = ""
    """Why the pool is invalid; empty if it is not."""

    @property
    def title(self) -> str:
        """`driver/name`."""
        return "/".join(self.id)

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.fault

    @property
    def comes_last(self) -> bool:
        """Pools with devices that take a while to be ready are tried after all others."""
        return any(spot.device.binding_conditions for spot in self.spots)

    @property
    def outline(self) -> tuple[object, ...]:
        """Equal for pools in which every search ends in the same places, if their devices look alike to the demand."""
        spots = ((spot.is_reachable, spot.is_withheld, spot.alternative_nodes) for spot in self.spots)
        runs = tuple((like, sum(1 for _ in run)) for like, run in groupby(spots))
        return self.id[0], self.is_incomplete, bool(self.fault), runs, tuple(self.counters)


def newest(slices: Iterable[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of the newest generation among some slices of one pool."""
    published = list(slices)
    generation = max((slice_.spec.pool.generation for slice_ in published), default=0)
    return [slice_ for slice_ in published if slice_.spec.pool.generation == generation]


def build_pool(
    pool_id: PoolId,
    seen: Sequence[ResourceSlice],
    everywhere: Iterable[ResourceSlice],
    reachable: Sequence[frozenset[int] | None],
    kinds: DeviceKinds,
    features: Features = DEFAULT_FEATURES,
) -> DevicePool | None:
    """The pool made of the slices seen from a node; None if those are obsolete.

    `seen` are of one generation, `everywhere` are all slices of the pool. `reachable` are per slice seen the devices
    that the node may use, or None where that is all of them.
    """
    slice_count, generation = seen[0].spec.pool.resource_slice_count, seen[0].spec.pool.generation
    unseen: list[ResourceSlice] = []
    if len(seen) != slice_count:
        every = list(everywhere)
        if any(slice_.spec.pool.generation > generation for slice_ in every):
            return None  # the driver is replacing this generation
        current = [
            slice_ for slice_ in every if slice_.spec.pool.generation == generation and not is_ignored(slice_, features)
        ]
        if len(current) != slice_count:
            return DevicePool(pool_id, is_incomplete=True)
        names = {slice_.name for slice_ in seen}
        unseen = [slice_ for slice_ in current if slice_.name not in names]
    in_order = sorted(zip(seen, reachable), key=lambda pair: pair[0].name)
    counting = [slice_ for slice_, _ in in_order]
    if features.release.counters_by_node and features.device_partitions:
        counting += [slice_ for slice_ in unseen if slice_.spec.shared_counters]
        unseen = [slice_ for slice_ in unseen if not slice_.spec.shared_counters]
    counters: dict[CounterName, int] = {}
    sets: set[str] = set()
    for slice_ in counting:
        for counter_set in slice_.spec.shared_counters:
            if counter_set.name in sets:
                return DevicePool(pool_id, fault=f"duplicate counter set name {counter_set.name}")
            sets.add(counter_set.name)
            for name, counter in counter_set.counters.items():
                counters[counter_set.name, name] = parse_quantity(counter.value).nano()
    spots = tuple(
        _spot(device, kinds, slice_, features, is_reachable=allowed is None or position in allowed)
        for slice_, allowed in in_order
        if not slice_.spec.shared_counters
        for position, device in enumerate(slice_.spec.devices)
    )
    elsewhere = tuple(
        (device.name, kinds.of(slice_.spec.driver, device)) for slice_ in unseen for device in slice_.spec.devices
    )
    consumers = [*(spot.device for spot in spots), *(device for slice_ in unseen for device in slice_.spec.devices)]
    fault = _duplicate(spots) or (features.device_partitions and _unknown_counter(consumers, sets, counters))
    return DevicePool(pool_id, fault=fault) if fault else DevicePool(pool_id, spots, counters, elsewhere)


def is_ignored(slice_: ResourceSlice, features: Features) -> bool:
    """Whether a slice makes its pool incomplete: it has compatibility groups, and their gate is off in this release."""
    return features.release.compatibility_groups_refused and any(
        used.compatibility_groups for device in slice_.spec.devices for used in device.consumes_counters
    )


def _spot(device: Device, kinds: DeviceKinds, slice_: ResourceSlice, features: Features, *, is_reachable: bool) -> Spot:
    if features.has_plain_devices and device.binds_to_node:
        device = msgspec.structs.replace(device, binds_to_node=False)
    is_withheld = bool(device.binding_conditions) and not features.device_binding_conditions
    return Spot(device, kinds.of(slice_.spec.driver, device), slice_, is_reachable, is_withheld)


def _duplicate(spots: Sequence[Spot]) -> str:
    names: set[str] = set()
    for spot in spots:
        if spot.device.name in names:
            return f"duplicate device name {spot.device.name}"
        names.add(spot.device.name)
    return ""


def _unknown_counter(devices: Iterable[Device], sets: set[str], counters: dict[CounterName, int]) -> str:
    for device in devices:
        for used in device.consumes_counters:
            if used.counter_set not in sets:
                return f"counter set {used.counter_set} not found"
            for name in used.counters:
                if (used.counter_set, name) not in counters:
                    return f"counter {name} not found in counter set {used.counter_set}"
    return ""

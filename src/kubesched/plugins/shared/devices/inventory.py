"""The devices within reach of each node, in the order in which they are tried, and how much of them is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

from kubesched.api.devices import DeviceTaintRule, ResourceSlice
from kubesched.api.node import Node
from kubesched.config.features import Features
from kubesched.framework.nodes import Nodes
from kubesched.plugins.shared.devices.device_kinds import CounterName, DeviceKinds
from kubesched.plugins.shared.devices.ledger import Ledger, PoolUse
from kubesched.plugins.shared.devices.pools import (
    DevicePool,
    PoolId,
    Reach,
    SliceIndex,
    Spot,
    build_pool,
    is_ignored,
    newest,
)
from kubesched.state.changes import ChangeLog, ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.taint_rules import TaintedSlices


class DeviceUse(NamedTuple):
    """How much of an inventory is in use. Equal where a search would find the same."""

    busy: int
    """A bit per spot: held by one claim alone."""
    consumed: tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
    """By spot that is shared: what is consumed of its capacities, in billionths."""
    counters: tuple[tuple[int, ...], ...]
    """Per pool what is left of its counters; may be less than nothing."""
    shares: tuple[int, ...] = ()
    """The spots of which shares are held, with or without any capacity."""


class Inventory:
    """The pools that a node can use. Nodes with the very same pools share one."""

    def __init__(self, pools: tuple[DevicePool, ...], replaced: tuple[PoolId, ...] = ()) -> None:
        self.pools = pools
        self.replaced = replaced
        """Pools of which the node sees only slices that are being replaced elsewhere, so that it cannot use them."""
        self._use: DeviceUse | None = None
        self._versions: tuple[tuple[PoolUse, int], ...] = ()

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """All devices that may be allocated, in the order in which they are tried."""
        return tuple(spot for pool in self.pools if pool.is_usable for spot in pool.spots)

    @cached_property
    def pool_of(self) -> tuple[int, ...]:
        """Per spot the index of its pool."""
        return tuple(i for i, pool in enumerate(self.pools) if pool.is_usable for _ in pool.spots)

    @property
    def pool_ids(self) -> tuple[PoolId, ...]:
        """All pools whose slices make a difference to it."""
        return *(pool.id for pool in self.pools), *self.replaced

    @cached_property
    def has_invalid_pools(self) -> bool:
        return any(pool.fault for pool in self.pools)

    def use(self, ledger: Ledger) -> DeviceUse:
        uses = [ledger.use_of(pool.id) for pool in self.pools]
        versions = tuple((use, use.version) for use in uses)
        if self._use is None or versions != self._versions:
            self._versions = versions
            self._use = self._read(uses)
        return self._use

    def _read(self, uses: list[PoolUse]) -> DeviceUse:
        busy, position = 0, 0
        consumed: list[tuple[int, tuple[tuple[str, int], ...]]] = []
        counters: list[tuple[int, ...]] = []
        shares: list[int] = []
        for pool, use in zip(self.pools, uses):
            if not pool.is_usable:
                counters.append(())
                continue
            for spot in () if use.is_empty else pool.spots:
                name = spot.device.name
                if name in use.exclusive:
                    busy |= 1 << position
                if name in use.capacity:
                    consumed.append((position, tuple(sorted(use.capacity[name].items()))))
                if name in use.shares:
                    shares.append(position)
                position += 1
            if use.is_empty:
                position += len(pool.spots)
            counters.append(tuple(_counters_left(pool, use).values()))
        return DeviceUse(busy, tuple(consumed), tuple(counters), tuple(shares))


def _counters_left(pool: DevicePool, use: PoolUse) -> dict[CounterName, int]:
    left = dict(pool.counters)
    if left:
        devices = [*((spot.device.name, spot.kind) for spot in pool.spots), *pool.elsewhere]
        for name, kind in devices:
            if kind.frame.consumes and use.is_allocated(name):
                for counter, nano in kind.frame.consumes:
                    left[counter] -= nano
    return left


class _PublishedSlice:
    """A slice, and what nodes need to know of it."""

    def __init__(self, slice_: ResourceSlice, features: Features) -> None:
        spec = slice_.spec
        self.slice = slice_
        self._is_hidden = is_ignored(slice_, features) or (
            not features.device_partitions and (spec.per_device_node_selection or bool(spec.shared_counters))
        )
        """Whether no node sees it: it needs a feature that is off. Its pool is not whole without it, though."""
        self.pool: PoolId = (spec.driver, spec.pool.name)
        self.is_for_all_nodes = bool(spec.shared_counters) and not features.release.counters_by_node
        """Counters are needed wherever a device draws from them; if they are by node, `build_pool` looks for them."""
        self.local_to = "" if self.is_for_all_nodes or self._is_hidden else spec.node_name or ""
        self._reach = Reach(spec)
        per_device = spec.per_device_node_selection
        self._devices = tuple(Reach(device) for device in spec.devices) if per_device else ()
        self._by_device = per_device and not self._reach.is_said

    def is_seen_from(self, node: Node) -> bool:
        if self._is_hidden:
            return False
        if self.is_for_all_nodes:
            return True
        if self._by_device:
            return any(reach.includes(node) for reach in self._devices)
        return self._reach.includes(node)

    def rows(self, nodes: Nodes) -> Iterable[int]:
        if self._is_hidden:
            return ()
        if self.is_for_all_nodes:
            return range(len(nodes))
        if self._by_device:
            return sorted({row for reach in self._devices for row in reach.rows(nodes)})
        return self._reach.rows(nodes)

    def reachable(self, node: Node) -> frozenset[int] | None:
        """The devices that the node may use; None where the slice speaks for all of them."""
        if not self.slice.spec.per_device_node_selection:
            return None
        return frozenset(i for i, reach in enumerate(self._devices) if reach.includes(node))


class Inventories:
    """The inventory of every row, kept in step with slices and nodes; `changes` has the rows to search again."""

    def __init__(self, state: ClusterState, ledger: Ledger) -> None:
        self.changes: ChangeLog[int] = ChangeLog()
        self._state = state
        self._ledger = ledger
        self._kinds = DeviceKinds(state.features)
        self._tainted = tainted = TaintedSlices(state.objects, by_rules=state.features.device_taint_rules)
        self._slices = SliceIndex(state.objects, lambda slice_: (_PublishedSlice(tainted.of(slice_), state.features),))
        self._rule_version = 0
        self._built: dict[PoolId, dict[object, DevicePool | None]] = {}
        self._rows: list[Inventory] = []
        self._rows_of_pool: dict[PoolId, set[int]] = {}
        self._stale: dict[int, None] = {}
        """Rows that are still to be built, in order."""
        self._wide_slices: dict[int, list[_PublishedSlice]] = {}
        """What such a row sees of slices for several nodes, if that was found out for all rows at once."""
        self._alike: dict[tuple[object, ...], Inventory] = {}
        """By the identity of their pools, and those that are replaced: inventories that many nodes have."""
        self._nothing = Inventory(())
        self._node_changes = ChangeReader(state.nodes.object_changes)
        self._use_changes = ChangeReader(ledger.changes)

    def of(self, row: int) -> Inventory:
        return self._rows[row]

    def refresh(self, row_built: Callable[[], None] = lambda: None) -> None:
        """Follow what has changed in slices, in nodes, and in the use of devices.

        `row_built` is called after each row; if it raises, the next call goes on with the row after that.
        """
        self._ledger.refresh()
        stale = self._follow_slices()
        size = self._state.nodes.size
        rows = self._node_changes.read()
        if rows is None or stale is None or len(self._rows) > size:
            self._begin_anew()
        else:
            for row in sorted({*stale, *rows, *range(len(self._rows), size)}):
                self._stale[row] = None
                self._wide_slices.pop(row, None)
        self._rows += [self._nothing] * (size - len(self._rows))
        while self._stale:
            row = next(iter(self._stale))
            self._rebuild(row)
            del self._stale[row]
            row_built()
        self._follow_use()

    def _follow_use(self) -> None:
        pools = self._use_changes.read()
        if pools is None:
            self.changes.all_changed()
            return
        for pool in pools:
            for row in self._rows_of_pool.get(pool, ()):
                self.changes.record(row)

    def _follow_slices(self) -> set[int] | None:
        """The rows whose devices may have changed; None for all."""
        rows: set[int] = set()
        everything = False
        for published in self._slices.follow(self._tainted_otherwise()):
            self._built.pop(published.pool, None)
            rows |= self._rows_of_pool.get(published.pool, set())
            if not published.local_to:
                everything = True
            elif (row := self._state.nodes.row_of.get(published.local_to)) is not None:
                rows.add(row)
        return None if everything else rows

    def _tainted_otherwise(self) -> list[str]:
        """The slices that rules have given other taints since the last time."""
        version = self._state.objects.version(DeviceTaintRule)
        if version == self._rule_version:
            return []
        self._rule_version = version
        return [
            published.slice.key
            for of_pool in self._slices.of_pool.values()
            for published in of_pool
            if (slice_ := self._state.objects.get(ResourceSlice, published.slice.key)) is not None
            and self._tainted.of(slice_) != published.slice
        ]

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        size = self._state.nodes.size
        if len(self._rows) > size:
            self._rows, self._rows_of_pool = [], {}
            self.changes.all_changed()
        self._alike.clear()
        self._stale = dict.fromkeys(range(size))
        self._wide_slices = {row: [] for row in self._stale}
        nodes = Nodes(self._state)
        for published in self._slices.wide:
            for row in published.rows(nodes):
                self._wide_slices[row].append(published)

    def _rebuild(self, row: int) -> None:
        node = self._state.nodes.nodes[row]
        inventory = self._nothing
        wide = self._wide_slices.pop(row, None)
        if node is not None:
            if wide is None:
                wide = [published for published in self._slices.wide if published.is_seen_from(node)]
            inventory = self._build(node, [*self._slices.local.get(node.name, ()), *wide])
        before = self._rows[row]
        if (inventory.pools, inventory.replaced) != (before.pools, before.replaced):
            self._set(row, inventory)
            self.changes.record(row)

    def _set(self, row: int, inventory: Inventory) -> None:
        for pool_id in self._rows[row].pool_ids:
            rows = self._rows_of_pool.get(pool_id, set())
            rows.discard(row)
            if not rows:
                self._rows_of_pool.pop(pool_id, None)
        self._rows[row] = inventory
        for pool_id in inventory.pool_ids:
            self._rows_of_pool.setdefault(pool_id, set()).add(row)

    def _build(self, node: Node, slices: list[_PublishedSlice]) -> Inventory:
        if not slices:
            return self._nothing
        by_pool: dict[PoolId, list[_PublishedSlice]] = {}
        for published in slices:
            by_pool.setdefault(published.pool, []).append(published)
        built = {pool_id: self._pool(node, pool_id, of_pool) for pool_id, of_pool in by_pool.items()}
        pools = sorted(filter(None, built.values()), key=lambda pool: (pool.comes_last, pool.id))
        replaced = tuple(pool_id for pool_id, pool in built.items() if pool is None)
        if any(published.local_to for published in slices):
            return Inventory(tuple(pools), replaced)  # no other node has these
        key = *map(id, pools), *replaced
        inventory = self._alike.get(key)
        if inventory is None:
            inventory = self._alike[key] = Inventory(tuple(pools), replaced)
        return inventory

    def _pool(self, node: Node, pool_id: PoolId, slices: list[_PublishedSlice]) -> DevicePool | None:
        by_name = {published.slice.name: published for published in slices}
        current = newest(published.slice for published in slices)
        reachable = [by_name[slice_.name].reachable(node) for slice_ in current]
        key = (tuple(slice_.name for slice_ in current), tuple(reachable))
        built = self._built.setdefault(pool_id, {})
        if key not in built:
            everywhere = (published.slice for published in self._slices.of_pool[pool_id])
            built[key] = build_pool(pool_id, current, everywhere, reachable, self._kinds, self._state.features)
        return built[key]

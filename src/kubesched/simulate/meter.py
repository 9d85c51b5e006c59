"""Measures how full nodes are while virtual time passes: at the end, on average, at the peak."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.devices import ResourceSlice
from kubesched.api.well_known import ZONE
from kubesched.simulate.report import Moment, Share, Utilisation
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Float, Rows

NO_ZONE = "(no zone)"


class UtilisationMeter:
    """Reads the node table, every resource that nodes offer, and counts the devices of drivers."""

    def __init__(self, state: ClusterState) -> None:
        self._table = state.nodes
        self._devices = _Devices(state)
        self.timeline: list[Moment] = []
        self._groups: list[_Group] = []
        self._resources: dict[str, int] = {}
        self._rows: Rows = np.zeros(0, dtype=np.int64)
        self._made_at = (-1, -1)

    def read(self, now: float, *, running: int, pending: int, placed: int) -> None:
        """Note the load at a time when all that was to happen has happened."""
        version = (self._table.object_changes.position, self._devices.version)
        if version != self._made_at:
            self._made_at = version
            self._make_groups()
        load = self._load()
        for group in self._groups:
            group.read(load)
        if self.timeline and self.timeline[-1].time == now:
            self.timeline.pop()
        self.timeline.append(Moment(now, running, pending, placed, self._groups[0].shares(0)))

    def passes(self, seconds: float) -> None:
        """Weigh the last reading with the seconds for which it held."""
        for group in self._groups:
            group.passes(seconds)

    def total(self, ended: float) -> Utilisation:
        """All nodes together; `ended` is when the last thing happened."""
        return self._used(self._groups[0], ended)[0]

    def by_zone(self, ended: float) -> tuple[Utilisation, ...]:
        return self._used(self._groups[1], ended)

    def by_node(self, ended: float) -> tuple[Utilisation, ...]:
        return self._used(self._groups[2], ended)

    def _make_groups(self) -> None:
        """Anew whenever nodes have changed; what was measured of those of the same name goes on."""
        table = self._table
        rows = np.flatnonzero(table.live)
        rows = rows[np.argsort([table.names[row] for row in rows.tolist()], kind="stable")]
        names = [table.names[row] for row in rows.tolist()]
        zones = [table.node(row).metadata.labels.get(ZONE, NO_ZONE) for row in rows.tolist()]
        zone_names = sorted(set(zones))
        number = {zone: i for i, zone in enumerate(zone_names)}
        always = ("cpu", "memory")
        self._rows = rows
        self._resources = {
            name: i for name, i in table.resources.items() if name in always or table.allocatable[i, rows].any()
        }
        devices = self._devices.offered(names)
        resources = [*self._resources, *devices]
        amounts = table.allocatable[list(self._resources.values())][:, rows].astype(np.float64)
        offered = np.vstack([amounts, *devices.values()])
        groups = [
            _Group(resources, np.zeros(len(rows), dtype=np.int64), ["all"], [""], offered),
            _Group(
                resources, np.array([number[zone] for zone in zones], dtype=np.int64), zone_names, zone_names, offered
            ),
            _Group(resources, np.arange(len(rows)), names, zones, offered),
        ]
        for old, new in zip(self._groups, groups):
            new.continue_from(old)
        self._groups = groups

    def _load(self) -> Float:
        load: Float = self._table.requested[list(self._resources.values())][:, self._rows].astype(np.float64)
        return np.vstack([load, *self._devices.in_use(self._groups[2].names).values()])

    def _used(self, group: _Group, ended: float) -> tuple[Utilisation, ...]:
        pods = group.summed(self._table.pod_count[self._rows].astype(np.float64)).tolist()
        return tuple(
            Utilisation(name, zone, nodes, group.used(i, ended), int(pods[i]))
            for i, (name, zone, nodes) in enumerate(zip(group.names, group.zones, group.sizes.tolist()))
        )


class _Devices:
    """The devices that drivers publish for a node, by the name of the driver."""

    def __init__(self, state: ClusterState) -> None:
        self._objects = state.objects
        self._node_of: dict[tuple[str, str, str], str] = {}
        self._used: dict[str, Float] = {}
        self._read_at = -1

    @property
    def version(self) -> int:
        return self._objects.version(ResourceSlice)

    def offered(self, nodes: list[str]) -> dict[str, Float]:
        self._read_at, self._used = -1, {}
        self._node_of = {
            (spec.driver, spec.pool.name, device.name): spec.node_name
            for spec in (slice_.spec for slice_ in self._objects.all(ResourceSlice))
            if spec.node_name
            for device in spec.devices
        }
        return self._counted(self._node_of, nodes)

    def in_use(self, nodes: list[str]) -> dict[str, Float]:
        version = self._objects.version(ResourceClaim)
        if self._node_of and version != self._read_at:
            self._read_at = version
            allocations = (claim.status.allocation for claim in self._objects.all(ResourceClaim))
            devices = {
                device.id
                for allocation in allocations
                if allocation is not None
                for device in allocation.devices.results
            }
            self._used = self._counted(devices, nodes)
        return self._used

    def _counted(self, devices: Iterable[tuple[str, str, str]], nodes: list[str]) -> dict[str, Float]:
        at = {name: i for i, name in enumerate(nodes)}
        counts = {driver: np.zeros(len(nodes)) for driver in sorted({device[0] for device in self._node_of})}
        for device in devices:
            place = at.get(self._node_of.get(device, ""))
            if place is not None:
                counts[device[0]][place] += 1
        return counts


class _Group:
    """Nodes taken together in one way: all, by zone, or each by itself. Amounts are (resource, member)."""

    def __init__(
        self, resources: list[str], member_of: Rows, names: list[str], zones: list[str], offered: Float
    ) -> None:
        self.resources = resources
        self.names = names
        self.zones = zones
        self.sizes = np.bincount(member_of, minlength=len(names))
        self._member_of = member_of
        self._is_each = bool(np.array_equal(member_of, np.arange(len(names))))
        self._offered = np.stack([self.summed(amounts) for amounts in offered])
        self._load: Float = np.zeros_like(self._offered)
        self._peak: Float = np.zeros_like(self._offered)
        self._area: Float = np.zeros_like(self._offered)
        self._offered_area: Float = np.zeros_like(self._offered)
        self._passed = 0.0

    def continue_from(self, earlier: _Group) -> None:
        """Take over what was measured so far of the same members and resources."""
        self._passed = earlier._passed
        member, resource = ({name: i for i, name in enumerate(names)} for names in (earlier.names, earlier.resources))
        shared_members = [(i, member[name]) for i, name in enumerate(self.names) if name in member]
        if not shared_members:
            return
        new_columns, old_columns = map(list, zip(*shared_members))
        for i, name in enumerate(self.resources):
            if name in resource:
                for own_sums, earlier_sums in (
                    (self._peak, earlier._peak),
                    (self._area, earlier._area),
                    (self._offered_area, earlier._offered_area),
                ):
                    own_sums[i, new_columns] = earlier_sums[resource[name], old_columns]

    def summed(self, amounts: Float) -> Float:
        """Amounts per node, summed per member."""
        if self._is_each:
            return amounts
        summed: Float = np.bincount(self._member_of, weights=amounts, minlength=len(self.names)).astype(np.float64)
        return summed

    def read(self, load: Float) -> None:
        self._load = np.stack([self.summed(amounts) for amounts in load])
        np.maximum(self._peak, self._load, out=self._peak)

    def passes(self, seconds: float) -> None:
        self._area += self._load * seconds
        self._offered_area += self._offered * seconds
        self._passed += seconds

    def shares(self, member: int) -> dict[str, float]:
        """What is requested now, per resource."""
        return {
            name: _share(self._load[i, member], self._offered[i, member])
            for i, name in enumerate(self.resources)
            if self._offered[i, member]
        }

    def used(self, member: int, ended: float) -> dict[str, Share]:
        """The shares of every resource that is offered, and always of cpu and memory."""
        return {
            name: self._resource(i, member, ended)
            for i, name in enumerate(self.resources)
            if self._offered[i, member] or name in ("cpu", "memory")
        }

    def _resource(self, resource: int, member: int, ended: float) -> Share:
        offered, end = float(self._offered[resource, member]), float(self._load[resource, member])
        # Time that passed after the last event, to see whether anything would still happen, does not count.
        after = self._passed - ended
        area = float(self._area[resource, member]) - end * after
        offered_area = float(self._offered_area[resource, member]) - offered * after
        mean = _share(area, offered_area) if ended else _share(end, offered)
        return Share(_share(end, offered), mean, _share(float(self._peak[resource, member]), offered))


def _share(part: float, whole: float) -> float:
    return round(float(part) / float(whole), 4) if whole else 0.0

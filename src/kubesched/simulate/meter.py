"""Measures how full nodes are while virtual time passes: at the end, on average, at the peak."""

from __future__ import annotations

import numpy as np

from kubesched.api.well_known import ZONE
from kubesched.simulate.report import Moment, Share, Utilisation
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Float, Rows

NO_ZONE = "(no zone)"

_CPU_AND_MEMORY = 2


class Meter:
    """Reads the node table. Nodes stay the same through a simulation, so their rows are looked up once."""

    def __init__(self, state: ClusterState) -> None:
        self._table = state.nodes
        self.timeline: list[Moment] = []
        self._groups: list[_Group] = []

    def read(self, now: float, *, running: int, pending: int, placed: int) -> None:
        """Note the load at a time when all that was to happen has happened."""
        if not self._groups:
            self._make_groups()
        for group in self._groups:
            group.read(self._load(group.rows))
        whole = self._groups[0].shares(0)
        cpu, memory = (float(share) for share in whole)
        if self.timeline and self.timeline[-1].time == now:
            self.timeline.pop()
        self.timeline.append(Moment(now, running, pending, placed, cpu, memory))

    def passes(self, seconds: float) -> None:
        """The cluster stays as it was last read for so long."""
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
        table = self._table
        rows = np.flatnonzero(table.live)
        rows = rows[np.argsort([table.names[row] for row in rows.tolist()], kind="stable")]
        names = [table.names[row] for row in rows.tolist()]
        zones = [table.node(row).metadata.labels.get(ZONE, NO_ZONE) for row in rows.tolist()]
        zone_names = sorted(set(zones))
        offered = table.allocatable[:_CPU_AND_MEMORY, rows].astype(np.float64)
        number = {zone: i for i, zone in enumerate(zone_names)}
        self._groups = [
            _Group(rows, np.zeros(len(rows), dtype=np.int64), ["all"], [""], offered),
            _Group(rows, np.array([number[zone] for zone in zones], dtype=np.int64), zone_names, zone_names, offered),
            _Group(rows, np.arange(len(rows)), names, zones, offered),
        ]

    def _load(self, rows: Rows) -> Float:
        load: Float = self._table.requested[:_CPU_AND_MEMORY, rows].astype(np.float64)
        return load

    def _used(self, group: _Group, ended: float) -> tuple[Utilisation, ...]:
        pods = group.summed(self._table.pod_count[group.rows].astype(np.float64)).tolist()
        return tuple(
            Utilisation(name, zone, nodes, *group.resources(i, ended), int(pods[i]))
            for i, (name, zone, nodes) in enumerate(zip(group.names, group.zones, group.sizes.tolist()))
        )


class _Group:
    """Nodes taken together in one way: all, by zone, or each by itself. Amounts are (resource, member)."""

    def __init__(self, rows: Rows, member_of: Rows, names: list[str], zones: list[str], offered: Float) -> None:
        self.rows = rows
        self.names = names
        self.zones = zones
        self.sizes = np.bincount(member_of, minlength=len(names))
        self._member_of = member_of
        self._offered = np.stack([self.summed(amounts) for amounts in offered])
        self._load: Float = np.zeros_like(self._offered)
        self._peak: Float = np.zeros_like(self._offered)
        self._area: Float = np.zeros_like(self._offered)
        self._passed = 0.0

    def summed(self, amounts: Float) -> Float:
        """Amounts per node, summed per member."""
        if len(self.names) == len(self.rows):
            return amounts
        summed: Float = np.bincount(self._member_of, weights=amounts, minlength=len(self.names)).astype(np.float64)
        return summed

    def read(self, load: Float) -> None:
        self._load = np.stack([self.summed(amounts) for amounts in load])
        np.maximum(self._peak, self._load, out=self._peak)

    def passes(self, seconds: float) -> None:
        self._area += self._load * seconds
        self._passed += seconds

    def shares(self, member: int) -> list[float]:
        """What is requested now, per resource."""
        return [_share(load[member], offered[member]) for load, offered in zip(self._load, self._offered)]

    def resources(self, member: int, ended: float) -> tuple[Share, Share]:
        cpu, memory = (self._resource(resource, member, ended) for resource in range(_CPU_AND_MEMORY))
        return cpu, memory

    def _resource(self, resource: int, member: int, ended: float) -> Share:
        offered, end = float(self._offered[resource, member]), float(self._load[resource, member])
        # Time that passed after the last event, to see whether anything would still happen, does not count.
        area = float(self._area[resource, member]) - end * (self._passed - ended)
        mean = area / ended if ended else end
        peak = float(self._peak[resource, member])
        return Share(_share(end, offered), _share(mean, offered), _share(peak, offered))


def _share(part: float, whole: float) -> float:
    return round(float(part) / float(whole), 4) if whole else 0.0

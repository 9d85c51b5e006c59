"""How many copies of one pod fit, without placing them: room per row, and topologies that limit copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.copy_limits import PLENTY, CopyLimit, NestedDomains
from kubesched.state.columns import Int32, Int64


@dataclass(frozen=True, slots=True)
class CopyRoom:
    """What the filters of a profile say about copies of one pod that come one after another."""

    rows: Int64
    """How many each row has room for by itself."""
    limits: tuple[CopyLimit, ...] = ()

    def total(self) -> int | None:
        """How many fit in all; None where that depends on which nodes are taken first, or has no end."""
        counts = self.counts()
        return counts[0] if counts is not None and counts[0] == counts[1] else None

    def counts(self) -> tuple[int, int] | None:
        """The fewest and the most that fit, as nodes are taken in one order or another; None if that is not known."""
        apart = sorted((limit for limit in self.limits if not limit.max_skew), key=lambda limit: -int(limit.ids.max()))
        spread = [limit for limit in self.limits if limit.max_skew]
        if len(spread) > 2:
            return None
        has_room = self.rows > 0
        room = self.rows[has_room]
        if (room >= PLENTY).any():
            return None
        columns = [limit.ids[has_room] for limit in (*apart, *spread)]
        for i in range(len(apart)):
            merged = _one_per_domain(room, columns[i:])
            if merged is None:
                return None
            room, columns[i:] = merged
        if len(spread) == 2:
            return _count_nested(spread, columns[-2:], room)
        count = _count_spread(spread[0], columns[-1], room) if spread else int(room.sum())
        return count, count

    def on_row(self, row: int) -> int:
        """How many fit on one row, if all of them go there."""
        most = int(self.rows[row])
        for limit in self.limits:
            domain = int(limit.ids[row])
            if domain >= 0:
                most = min(most, _in_one_domain(limit, domain))
        return most


def _one_per_domain(room: Int64, columns: Sequence[Int32]) -> tuple[Int64, list[Int32]] | None:
    """Rows of one domain of the first column as one, with room for one copy; None if the others cut through it."""
    inside = columns[0] >= 0
    _, first, of_row = np.unique(columns[0][inside], return_index=True, return_inverse=True)
    merged = []
    for column in columns:
        ids = column[inside]
        if (ids != ids[first][of_row]).any():
            return None
        merged.append(np.concatenate((column[~inside], ids[first])))
    return np.concatenate((room[~inside], np.ones(len(first), dtype=np.int64))), merged


def _count_nested(limits: Sequence[CopyLimit], columns: Sequence[Int32], room: Int64) -> tuple[int, int] | None:
    """Of two constraints, the one with fewer domains is the outer one."""
    outer, inner = sorted(range(2), key=lambda i: len(np.unique(columns[i])))
    nested = NestedDomains.of(limits[outer], limits[inner], (columns[outer], columns[inner]), room)
    return nested.counts() if nested is not None else None


def _count_spread(limit: CopyLimit, ids: Int32, room: Int64) -> int:
    """How many pods each domain can get: none gets more than `max_skew` above the first domain that is full."""
    assert limit.pods is not None
    domain_room = np.zeros(len(limit.pods), dtype=np.int64)
    np.add.at(domain_room, ids, room)
    highest = limit.fewest(limit.pods + domain_room) + limit.max_skew
    return int(np.clip(highest - limit.pods, 0, domain_room).sum())


def _in_one_domain(limit: CopyLimit, domain: int) -> int:
    """How many a domain takes while all others stay as they are."""
    if not limit.max_skew:
        return 1
    assert limit.pods is not None
    assert limit.counted is not None
    others = limit.counted[:-1].copy()
    others[domain] = False
    fewest = 0 if limit.lacks_domains else int(limit.pods[:-1][others].min(initial=PLENTY))
    return max(fewest + limit.max_skew - int(limit.pods[domain]), 0)

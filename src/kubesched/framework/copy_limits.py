"""Topologies in which copies of a pod keep each other away, alone and two at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubesched.state.columns import Bool, Int32, Int64

PLENTY = 1_000_000
"""Room for so many on one row is no limit at all."""


class CopyLimit(NamedTuple):
    """A topology in which copies of a pod keep each other away: by anti-affinity, or by a spread constraint."""

    ids: Int32
    """Per row its domain; -1 for rows that are in none."""
    max_skew: int = 0
    """0 for anti-affinity: one copy in a domain."""
    pods: Int64 | None = None
    """Per domain the pods that the constraint counts now."""
    counted: Bool | None = None
    """Per domain whether it may be the one with fewest pods."""
    lacks_domains: bool = False
    """Whether there are fewer domains than the constraint wants, so that fewest is 0."""

    def fewest(self, pods: Int64) -> int:
        """Of the domains that are counted, the fewest of these pods per domain; the last entry is for rows in none."""
        assert self.counted is not None
        return 0 if self.lacks_domains else int(pods[:-1][self.counted[:-1]].min(initial=PLENTY**2))


_MOST_STEPS = 2_000


class NestedDomains(NamedTuple):
    """The domains of a spread constraint within those of another one: hosts in zones.

    The order in which copies come can matter: a zone may be full while one of its hosts is empty, which then holds back
    all other hosts. So `counts` finds every way in which it may end, by the fewest pods that a host has then.
    """

    outer: CopyLimit
    inner: CopyLimit
    outer_of: Int64
    """Per inner domain the outer one that it is in; the last stands for those that take no copy."""
    room: Int64
    """Per inner domain."""

    @classmethod
    def of(cls, outer: CopyLimit, inner: CopyLimit, ids: tuple[Int32, Int32], room: Int64) -> NestedDomains | None:
        """`ids` are those of rows that have room, in both; None if an inner domain is in several outer ones."""
        assert outer.pods is not None
        assert inner.pods is not None
        outer_of = np.full(len(inner.pods), len(outer.pods) - 1, dtype=np.int64)
        outer_of[ids[1]] = ids[0]
        if (outer_of[ids[1]] != ids[0]).any():
            return None
        together = np.zeros(len(outer_of), dtype=np.int64)
        np.add.at(together, ids[1], room)
        return cls(outer, inner, outer_of, together)

    def counts(self) -> tuple[int, int] | None:
        """The fewest and the most copies that fit, as nodes are taken in one order or another."""
        pods, counted, room = self.inner.pods, self.inner.counted, self.room
        assert pods is not None
        assert counted is not None
        first, last = self.inner.fewest(pods), self.inner.fewest(pods + room)
        if last - first > _MOST_STEPS:
            return None
        ends = []
        for fewest in range(first, last + 1):
            takes = np.clip(fewest + self.inner.max_skew - pods, 0, room)
            limits, outer_takes = self._in_outer(takes)
            waits = counted & (pods <= fewest) & (pods + room > fewest)
            without = outer_takes[self.outer_of] - takes + fewest - pods
            if fewest == last or (limits[self.outer_of] <= without)[waits].any():
                ends.append(int(np.minimum(limits, outer_takes).sum()))
            needed = np.where(counted, np.clip(fewest + 1 - pods, 0, None), 0)
            if (np.bincount(self.outer_of, needed, len(limits)) > limits).any():
                break  # some inner domain never gets more than that
        return min(ends), max(ends)

    def _in_outer(self, takes: Int64) -> tuple[Int64, Int64]:
        """Per outer domain how many copies it may get, and how many its inner domains take."""
        pods = self.outer.pods
        assert pods is not None
        together = np.bincount(self.outer_of, takes, len(pods)).astype(np.int64)
        return np.clip(self.outer.fewest(pods + together) + self.outer.max_skew - pods, 0, None), together

"""Placed pods: per row in order of arrival, and as columns for questions about all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import numpy as np

from kubesched.api.pod import Pod
from kubesched.state.columns import Bool, Float, Int32, Int64, grown
from kubesched.state.facts import HostPort, PodFacts
from kubesched.state.resources import ResourceColumns

_FIRST_PODS = 256

_YEAR_0 = "0000-"
_400_YEARS = 146_097 * 86_400.0

NO_START_TIME = float("inf")
"""A pod that has not started counts as later than any that has."""


class PlacedPod:
    """A pod on a row: bound, or assumed to be."""

    __slots__ = ("assumed", "facts", "index", "place", "pod", "row", "start")

    def __init__(self, pod: Pod, facts: PodFacts, row: int, assumed: bool) -> None:
        self.pod = pod
        self.facts = facts
        self.row = row
        self.assumed = assumed
        self.index = -1
        self.place = -1
        """Its index among the pods of its row."""
        self.start = start_time(pod) if pod.status.start_time else NO_START_TIME

    @property
    def importance(self) -> tuple[int, float]:
        """Sorts the most important pods first: higher priority, then longer running."""
        return -self.pod.priority, self.start


class PodTable:
    """All placed pods. Only the cluster state writes here."""

    def __init__(self, resources: ResourceColumns) -> None:
        self.size = 0
        self.on_row: list[list[PlacedPod]] = []
        self.at: list[PlacedPod | None] = []
        self.by_priority: dict[int, int] = {}
        """How many placed pods have each priority."""
        self.rows: Int32 = np.full(_FIRST_PODS, -1, dtype=np.int32)
        self.priority: Int64 = np.zeros(_FIRST_PODS, dtype=np.int64)
        self.start: Float = np.zeros(_FIRST_PODS, dtype=np.float64)
        self.groups: Int32 = np.zeros(_FIRST_PODS, dtype=np.int32)
        """The id of each pod's LabelClass (`MatchCounts`)."""
        self.terminating: Bool = np.zeros(_FIRST_PODS, dtype=np.bool_)
        self._resources = resources
        self._requests: dict[int, Int64] = {}
        self._requests_of = resources.resources_version
        self.ports: dict[tuple[str, int], dict[int, set[str]]] = {}
        """(protocol, port) -> row -> addresses on which a pod has it. A port has one holder, whose removal frees it."""
        self.claim_users: dict[str, dict[int, int]] = {}
        """claim -> row -> how many pods there use it."""
        self._free: list[int] = []

    def add(self, placed: PlacedPod) -> None:
        while len(self.on_row) <= placed.row:
            self.on_row.append([])
        self._put_on_row(placed)
        index = self._free.pop() if self._free else self._next_index()
        placed.index = index
        self.at[index] = placed
        priority = placed.pod.priority
        self.rows[index] = placed.row
        self.priority[index] = priority
        self.start[index] = placed.start
        self.by_priority[priority] = self.by_priority.get(priority, 0) + 1
        if placed.pod.is_terminating:
            self.terminating[index] = True
        if self._requests_of == self._resources.resources_version:
            self._write_requests(index, placed.facts.takes)
        if placed.facts.ports:
            self._claim_ports(placed)
        for claim in placed.facts.claims:
            users = self.claim_users.setdefault(claim, {})
            users[placed.row] = users.get(placed.row, 0) + 1

    def renew(self, placed: PlacedPod, pod: Pod) -> None:
        """The watch shows a placed pod anew, with the same facts: as `remove` and `add`, but cheaper."""
        self._take_from_row(placed)
        self._put_on_row(placed)
        placed.pod = pod
        placed.assumed = False
        placed.start = self.start[placed.index] = start_time(pod)
        self._claim_ports(placed)

    def remove(self, placed: PlacedPod) -> None:
        self._take_from_row(placed)
        index = placed.index
        self.at[index] = None
        self.rows[index] = -1
        self.terminating[index] = False
        self._free.append(index)
        for column in self._requests.values():
            column[index] = 0
        priority = placed.pod.priority
        self.by_priority[priority] -= 1
        if not self.by_priority[priority]:
            del self.by_priority[priority]
        for port in placed.facts.ports:
            self._release_port(port, placed.row)
        for claim in placed.facts.claims:
            users = self.claim_users[claim]
            users[placed.row] -= 1
            if not users[placed.row]:
                del users[placed.row]
                if not users:
                    del self.claim_users[claim]

    def arrange(self, row: int, identities: Sequence[str]) -> None:
        """Put the pods of a row in this order, which they had before some of them left and came back."""
        places = {identity: place for place, identity in enumerate(identities)}
        on_row = self.on_row[row]
        on_row.sort(key=lambda placed: places[placed.pod.identity])
        for place, placed in enumerate(on_row):
            placed.place = place

    def restore(self, row: int, pods: Sequence[PlacedPod]) -> None:
        """As `arrange`, by the pods themselves."""
        self.on_row[row][:] = pods
        for place, placed in enumerate(pods):
            placed.place = place

    def pods_on(self, row: int) -> list[PlacedPod]:
        """The pods of a row. The list is the table's own: read it, do not keep it."""
        return self.on_row[row] if row < len(self.on_row) else []

    def has_lower_priority_than(self, priority: int) -> bool:
        """Whether any placed pod could be preempted by one of this priority."""
        return any(placed_priority < priority for placed_priority in self.by_priority)

    def with_lower_priority(self, priority: int) -> Iterator[PlacedPod]:
        """All placed pods of a lower priority, found in the column: there may be very many."""
        is_lower = (self.rows[: self.size] >= 0) & (self.priority[: self.size] < priority)
        for index in np.flatnonzero(is_lower).tolist():
            placed = self.at[index]
            assert placed is not None
            yield placed

    def _next_index(self) -> int:
        index = self.size
        if index == len(self.rows):
            self.rows = grown(self.rows, 2 * index, -1)
            self.priority = grown(self.priority, 2 * index)
            self.start = grown(self.start, 2 * index)
            self.groups = grown(self.groups, 2 * index)
            self.terminating = grown(self.terminating, 2 * index)
            self._requests = {resource: grown(column, 2 * index) for resource, column in self._requests.items()}
        self.size += 1
        self.at.append(None)
        return index

    @property
    def requests(self) -> dict[int, Int64]:
        """By the id of each resource that some placed pod requests and some node offers, how much each pod requests."""
        if self._requests_of != self._resources.resources_version:
            self._requests, self._requests_of = {}, self._resources.resources_version
            for index, placed in enumerate(self.at):
                if placed is not None:
                    self._write_requests(index, placed.facts.takes)
        return self._requests

    def _write_requests(self, index: int, takes: Iterable[tuple[int, int]]) -> None:
        for resource, amount in takes:
            column = self._requests.get(resource)
            if column is None:
                column = self._requests[resource] = np.zeros(len(self.rows), dtype=np.int64)
            column[index] = amount

    def _put_on_row(self, placed: PlacedPod) -> None:
        on_row = self.on_row[placed.row]
        placed.place = len(on_row)
        on_row.append(placed)

    def _take_from_row(self, placed: PlacedPod) -> None:
        """The last pod of the row takes the empty place, as in kube-scheduler: the order decides between victims."""
        on_row = self.on_row[placed.row]
        last = on_row.pop()
        if last is not placed:
            on_row[placed.place] = last
            last.place = placed.place

    def _claim_ports(self, placed: PlacedPod) -> None:
        for port in placed.facts.ports:
            self.ports.setdefault((port.protocol, port.port), {}).setdefault(placed.row, set()).add(port.ip)

    def _release_port(self, port: HostPort, row: int) -> None:
        key = (port.protocol, port.port)
        rows = self.ports.get(key, {})
        rows.get(row, set()).discard(port.ip)
        if not rows.get(row, True):
            del rows[row]
            if not rows:
                del self.ports[key]


def start_time(pod: Pod) -> float:
    """When the pod started, in seconds since 1970; NO_START_TIME for a text that is no time."""
    text = pod.status.start_time
    if not text:
        return NO_START_TIME
    try:
        if text.startswith(_YEAR_0):  # Go has the year 0, Python has not; the calendar repeats itself after 400 years
            return datetime.fromisoformat(f"0400-{text.removeprefix(_YEAR_0)}").timestamp() - _400_YEARS
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return NO_START_TIME

"""Lists of nodes, pods and workloads: filtered, sorted, a page at a time."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kubesched.api.pod import Pod
from kubesched.api.requests import CPU, MEMORY
from kubesched.api.well_known import ZONE
from kubesched.simulate.cluster import created_at
from kubesched.ui.model.node_map import CORDONED, LIVE, NOT_READY, TAINTED, flags_of
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import PHASES, WAITING, WorkloadName, in_turn, owner_of, phase_of
from kubesched.ui.model.pending import requests_of
from kubesched.ui.model.usage import amounts_in_words
from kubesched.ui.model.workloads import WorkloadLine

PAGE = 100
_STATES = {NOT_READY: "not ready", CORDONED: "cordoned", TAINTED: "tainted"}
READY = "ready"
_DIGITS = re.compile(r"(\d+)")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which part of a list is asked for: filters, order, page."""

    text: str = ""
    """Part of a name; of pods also of the node or the workload."""
    namespace: str = ""
    state: str = ""
    """A phase of pods, a state of nodes, or a kind of workload."""
    sort: str = ""
    """A column; with `-` before it the largest first."""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node in a list. Shares are of what it offers."""

    name: str
    zone: str
    states: tuple[str, ...]
    pods: int
    requested: dict[str, float]
    used: dict[str, float]


@dataclass(frozen=True, slots=True)
class PodLine:
    """A pod in a list."""

    pod: str
    kind: str
    workload: str
    phase: str
    node: str
    priority: int
    requests: dict[str, str]
    used: dict[str, str]
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list."""

    total: int
    offset: int
    rows: tuple[Any, ...]
    states: tuple[tuple[str, int], ...]
    """What can be chosen, and how many there are of each."""
    namespaces: tuple[str, ...]


class ListModel:
    """Makes the lists."""

    def __init__(self, observed: ObservedCluster, workloads: Callable[[], Mapping[WorkloadName, WorkloadLine]]) -> None:
        self._observed = observed
        self._workloads = workloads

    def nodes(self, query: ListQuery) -> Listing:
        table, report = self._observed.state.nodes, self._observed.usage()
        requested, allocatable = table.requested[:, : table.size].tolist(), table.allocatable[:, : table.size].tolist()
        counts_of_pods = table.pod_count[: table.size].tolist()
        used = report.nodes if report is not None else {}
        lines = []
        for name, row in table.row_of.items():
            if not table.live[row]:
                continue
            node = table.node(row)
            flags = flags_of(node)
            states = tuple(word for bit, word in _STATES.items() if flags & bit) if flags > LIVE else ()
            offers = {resource: (i, offer) for resource, i in table.resources.items() if (offer := allocatable[i][row])}
            shares = {resource: round(requested[i][row] / offer, 4) for resource, (i, offer) in offers.items()}
            amounts = ((resource, amount) for resource, amount in used.get(name, {}).items() if resource in offers)
            used_shares = {resource: round(amount / offers[resource][1], 4) for resource, amount in amounts}
            zone = node.metadata.labels.get(ZONE, "")
            lines.append(NodeLine(name, zone, states, counts_of_pods[row], shares, used_shares))
        counts = Counter(state for line in lines for state in line.states or (READY,))
        text = query.text.lower()
        kept = [
            line
            for line in lines
            if text in line.name.lower() and (not query.state or query.state in (line.states or (READY,)))
        ]
        keys: dict[str, Callable[[NodeLine], Any]] = {
            "name": lambda line: _by_numbers(line.name),
            "zone": lambda line: line.zone,
            "pods": lambda line: line.pods,
            "state": lambda line: line.states,
            CPU: lambda line: line.requested.get(CPU, 0.0),
            MEMORY: lambda line: line.requested.get(MEMORY, 0.0),
        }
        rows = _page(kept, query, keys, lambda line: _by_numbers(line.name))
        return Listing(len(kept), query.offset, tuple(rows), tuple(counts.items()), ())

    def pods(self, query: ListQuery) -> Listing:
        observed, text = self._observed, query.text.lower()
        counts, namespaces = Counter[str](), set[str]()
        kept: list[tuple[Pod, str, str]] = []
        for pod in observed.pods.values():
            namespaces.add(pod.namespace)
            if query.namespace and pod.namespace != query.namespace:
                continue
            node = observed.node_of(pod)
            if text and text not in pod.key.lower() and text not in node.lower():
                continue
            phase = phase_of(pod, node)
            counts[phase] += 1
            if not query.state or phase == query.state:
                kept.append((pod, node, phase))
        keys: dict[str, Callable[[tuple[Pod, str, str]], Any]] = {
            "name": lambda row: in_turn(row[0].key),
            "phase": lambda row: PHASES.index(row[2]),
            "node": lambda row: row[1],
            "priority": lambda row: row[0].priority,
            "age": lambda row: -created_at(row[0]),
            "workload": lambda row: owner_of(row[0]).name,
        }
        rows = _page(kept, query, keys, lambda row: (row[2] != WAITING, in_turn(row[0].key)))
        states = tuple((phase, counts[phase]) for phase in PHASES if counts[phase])
        return Listing(len(kept), query.offset, tuple(map(self._pod, rows)), states, tuple(sorted(namespaces)))

    def workloads(self, query: ListQuery) -> Listing:
        lines, text = self._workloads().values(), query.text.lower()
        namespaces = tuple(sorted({line.namespace for line in lines}))
        matching = [
            line
            for line in lines
            if text in f"{line.namespace}/{line.name}".lower() and query.namespace in ("", line.namespace)
        ]
        kept = [line for line in matching if query.state in ("", line.kind)]
        keys: dict[str, Callable[[WorkloadLine], Any]] = {
            "name": lambda line: (line.namespace, line.name),
            "kind": lambda line: line.kind,
            "pods": lambda line: line.pods,
            "waiting": lambda line: line.phases[WAITING],
            "nodes": lambda line: line.nodes,
            "priority": lambda line: line.priority,
        }
        rows = _page(kept, query, keys, lambda line: (not line.phases[WAITING], line.namespace, line.name))
        states = tuple(sorted(Counter(line.kind for line in matching).items()))
        return Listing(len(kept), query.offset, tuple(rows), states, namespaces)

    def _pod(self, row: tuple[Pod, str, str]) -> PodLine:
        pod, node, phase = row
        owner, report = owner_of(pod), self._observed.usage()
        used = amounts_in_words(report.pods.get(pod.key, {})) if report is not None else {}
        age = self._observed.age_of(pod)
        return PodLine(pod.key, owner.kind, owner.name, phase, node, pod.priority, requests_of(pod), used, age)


def _by_numbers(name: str) -> list[str | int]:
    """By which nodes are sorted, as the map sorts them: ip-10-0-2 before ip-10-0-10."""
    return [int(part) if i % 2 else part for i, part in enumerate(_DIGITS.split(name))]


def _page(
    rows: Iterable[T], query: ListQuery, keys: Mapping[str, Callable[[T], Any]], usual: Callable[[T], Any]
) -> list[T]:
    """By the column that is asked for; of equals, and where none is, in the usual order."""
    key = keys.get(query.sort.removeprefix("-"))
    upto = query.offset + PAGE
    if key is None:
        return heapq.nsmallest(upto, rows, key=usual)[query.offset :]
    ordered = sorted(rows, key=usual)
    ordered.sort(key=key, reverse=query.sort.startswith("-"))
    return ordered[query.offset : upto]

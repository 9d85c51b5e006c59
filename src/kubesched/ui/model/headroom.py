"""Headroom for the page: how many more pods of a workload fit, in the cluster and on one node."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.ask.headroom import Headroom, has_headroom, headroom, headroom_on
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import WorkloadName, owner_of
from kubesched.ui.model.usage import rounded_amount

_WORKLOADS = 6
_SECONDS = 0.05
"""For placing copies of one pod, where nothing quicker tells how many fit."""


@dataclass(frozen=True, slots=True)
class WorkloadRoom:
    """How many more pods of a workload fit: the number that `kubesched capacity` counts."""

    workload: WorkloadName
    example: str
    running: int
    more: int
    at_least: bool
    """Whether there may be room for more, as the time did not suffice to count all."""
    nodes: int
    """Nodes that would take one."""
    requests: dict[str, str]


class HeadroomModel:
    """Counts room. What was counted is kept until anything changes."""

    def __init__(self, observed: ObservedCluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._observed = observed
        self._clock = clock
        self._version = -1
        self._known: dict[tuple[PodFacts, str], Headroom] = {}
        """By facts and node; no node stands for all."""

    def rooms(self) -> list[WorkloadRoom]:
        """For the workloads with most pods, of those that could have more. Pods of one workload may be of several
        kinds: the API server gives them the zone of their node as a label, and a rollout another template."""
        pods = [placed for placed in self._observed.state.pods.at if placed is not None]
        workloads = [_workload(placed) for placed in pods]
        example = {workload: placed.pod for workload, placed in zip(workloads, pods)}
        running = Counter({name: count for name, count in Counter(workloads).items() if has_headroom(example[name])})
        largest = dict(running.most_common(_WORKLOADS))
        kinds = Counter((name, placed.facts) for name, placed in zip(workloads, pods) if name in largest)
        common = {workload: facts for (workload, facts), _ in reversed(kinds.most_common())}
        for workload, placed in zip(reversed(workloads), reversed(pods)):
            if common.get(workload) is placed.facts:
                example[workload] = placed.pod
        return [self.room(example[workload], count) for workload, count in largest.items()]

    def room(self, pod: Pod, running: int) -> WorkloadRoom:
        """For more pods like this one."""
        facts = self._observed.state.facts(pod)
        room = self.of(pod, facts)
        requests = {name: rounded_amount(name, amount) for name, amount, _ in facts.amounts if amount}
        return WorkloadRoom(owner_of(pod), pod.key, running, room.more, not room.is_exact, room.nodes, requests)

    def of(self, pod: Pod, facts: PodFacts, node: str = "") -> Headroom:
        """How many more pods like this one fit, on all nodes or on one."""
        self._forget_what_changed()
        room = self._known.get((facts, node))
        if room is None:
            until, places = self._clock() + _SECONDS, self._observed.experiments
            cluster, is_late = self._observed.cluster, lambda: self._clock() > until
            if node:
                room = headroom_on(cluster, pod, node, out_of_time=is_late, places=places)
            else:
                room = headroom(cluster, pod, out_of_time=is_late, places=places)
            self._known[facts, node] = room
            self._version = self._observed.state.nodes.changes.position  # copies that came and went count as changes
        return room

    def unknown(self) -> tuple[int, dict[PodFacts, Pod]]:
        """The version of the cluster, and one pod of each kind of which only the least that fits is known."""
        self._forget_what_changed()
        unknown = {facts for (facts, node), room in self._known.items() if not node and not room.is_exact}
        pods = filter(None, self._observed.state.pods.at)
        return self._version, {placed.facts: placed.pod for placed in pods if placed.facts in unknown}

    def learn(self, version: int, rooms: Mapping[PodFacts, Headroom]) -> None:
        """What was counted on a copy holds if nothing has changed since."""
        self._forget_what_changed()
        if version == self._version:
            self._known |= {(facts, ""): room for facts, room in rooms.items()}

    def _forget_what_changed(self) -> None:
        version = self._observed.state.nodes.changes.position
        if version != self._version:
            self._known.clear()
            self._version = version


def _workload(placed: PlacedPod) -> WorkloadName | PodFacts:
    """What a pod counts as part of; pods without an owner that are alike count together."""
    return owner_of(placed.pod) if placed.pod.metadata.owner_references else placed.facts

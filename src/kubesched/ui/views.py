"""All models of one observed cluster, made together: what the page can ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubesched import __version__
from kubesched.ask.service import QueryService
from kubesched.ui.model.headroom import HeadroomModel
from kubesched.ui.model.node_map import LabelKey, NodeMapModel, default_group
from kubesched.ui.model.nodes import NodeModel
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.pending import PendingModel
from kubesched.ui.model.pods import PodModel
from kubesched.ui.model.queue_history import QueueHistory
from kubesched.ui.model.shadow import ShadowModel

CHEAP = 0.002
"""Seconds of CPU that are spent again for every question."""
TIMES = 200
"""What takes more than that is given again for so many times as long."""
LONGEST = 5.0

T = TypeVar("T")


class Reused(Generic[T]):
    """Gives an answer that took long again for a while: in a large cluster the page asks for it all the time."""

    def __init__(
        self,
        work: Callable[[], T],
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._work = work
        self._clock = clock
        self._cpu = cpu
        self._until = 0.0
        self._answers: list[T] = []

    def __call__(self) -> T:
        if not self._answers or self._clock() >= self._until:
            began = self._cpu()
            self._answers = [self._work()]
            took = self._cpu() - began
            self._until = self._clock() + (min(took * TIMES, LONGEST) if took > CHEAP else 0.0)
        return self._answers[0]


@dataclass(frozen=True, slots=True)
class About:
    """What the page is looking at."""

    version: str
    source: str
    title: str
    live: bool
    """Whether things happen there."""
    nodes: dict[str, int]
    pods: int
    pending: int
    labels: list[LabelKey]
    group_by: str
    """By which label nodes are grouped unless told otherwise."""
    profiles: list[str]
    weights: dict[str, int]
    """Score plugins of the first profile."""
    extenders: int
    shadow: bool
    """Whether another scheduler is in charge, and this one says what it thinks of that one's decisions."""
    schedules: bool
    """Whether there is a queue whose pods are tried here."""
    experiments: bool
    """Whether questions that take seconds are answered."""


class PageViews:
    """The models. To be used where the cluster lives: on its event loop."""

    def __init__(self, observed: ObservedCluster) -> None:
        self.observed = observed
        self.map = NodeMapModel(observed.state)
        self.pending = PendingModel(observed)
        self.headroom = HeadroomModel(observed)
        self.pods = PodModel(observed, self.pending)
        self.nodes = NodeModel(observed, self.pending, self.headroom)
        self.pending_groups, self.rooms = Reused(self.pending.groups), Reused(self.headroom.rooms)
        self.queue = QueueHistory(observed)
        self.shadow = ShadowModel(observed.shadow) if observed.shadow is not None else None
        self.service = QueryService(observed.cluster, stands_still=not observed.live) if observed.experiments else None
        """Answers questions that take seconds."""

    def about(self) -> About:
        observed, labels = self.observed, self.map.label_keys()
        counts = self.queue.counts()
        return About(
            version=__version__,
            source=observed.kind,
            title=observed.title,
            live=observed.live,
            nodes=self.map.summary(),
            pods=len(observed.pods),
            pending=counts.active + counts.backoff + counts.unschedulable + counts.gated,
            labels=labels,
            group_by=default_group(labels),
            profiles=list(observed.profiles),
            weights=next((dict(profile.weights) for profile in observed.profiles.values()), {}),
            extenders=len(observed.extenders),
            shadow=observed.shadow is not None,
            schedules=observed.queue is not None,
            experiments=observed.experiments,
        )

"""All models of one observed cluster, and how the page gets at them: in its own thread, or a scheduler's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from kubesched import __version__
from kubesched.api.release import RELEASES
from kubesched.api.well_known import ZONE
from kubesched.ask.service import SLOW_TIMEOUT, QueryService
from kubesched.ui.model.headroom import HeadroomModel
from kubesched.ui.model.lists import ListModel
from kubesched.ui.model.node_map import LabelKey, NodeMapModel
from kubesched.ui.model.nodes import NodeModel
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.pending import PendingModel
from kubesched.ui.model.pods import PodModel
from kubesched.ui.model.queue_history import QueueHistory
from kubesched.ui.model.shadow import ShadowModel
from kubesched.ui.model.workloads import WorkloadModel

CHEAP = 0.002
"""Seconds of CPU that are spent again for every question."""
TIMES = 200
"""What takes more than that is given again for so many times as long."""
LONGEST = 5.0
T = TypeVar("T")

_SAMPLE_SECONDS = 1.0
LINGER = 10.0
"""Seconds after the last question until the page lets go of the scheduler."""
SHARE = 0.008
"""Of the CPU time of a scheduler that has pods to try, questions get no more than this."""
AT_A_STRETCH = 0.03
"""Seconds of its time that may be taken before that counts."""
LONGEST_PAUSE = 1.0


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
    release: str
    """The release of Kubernetes that is followed."""
    releases: list[str]
    """All that can be compared."""


class PageViews:
    """The models. To be used where the cluster lives: on its event loop."""

    def __init__(self, observed: ObservedCluster) -> None:
        self.observed = observed
        self.map = NodeMapModel(observed.state)
        self.pending = PendingModel(observed)
        self.headroom = HeadroomModel(observed)
        self.pods = PodModel(observed, self.pending)
        self.nodes = NodeModel(observed, self.pending, self.headroom)
        self.workloads = WorkloadModel(observed, self.pending, self.headroom, self.pods)
        self.lists = ListModel(observed, Reused(self.workloads.lines))
        self.pending_groups, self.rooms = Reused(self.pending.groups), Reused(self.headroom.rooms)
        self.queue = QueueHistory(observed)
        self.shadow = ShadowModel(observed.shadow) if observed.shadow is not None else None
        self.service: QueryService | None = None
        """Answers questions that take seconds."""
        if observed.experiments:
            self.service = QueryService(observed.cluster, stands_still=not observed.live, slow_timeout=SLOW_TIMEOUT)

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
            group_by=ZONE if any(label.key == ZONE for label in labels) else "",
            profiles=list(observed.profiles),
            weights=next((dict(profile.weights) for profile in observed.profiles.values()), {}),
            extenders=len(observed.extenders),
            shadow=observed.shadow is not None,
            schedules=observed.queue is not None,
            experiments=observed.experiments,
            release=observed.cluster.configuration.features.release.name,
            releases=list(RELEASES),
        )


Ask = Callable[[Callable[[PageViews], Any]], Awaitable[Any]]


class ViewsProvider(Protocol):
    """Views, which are to be touched only where the cluster lives: so questions are handed over."""

    async def ask(self, question: Callable[[PageViews], T]) -> T:
        """The answer to a question, asked between two things that happen to the cluster."""

    def looking(self) -> AbstractContextManager[None]:
        """While this lasts a page is open, and attempts are measured."""


class LocalViews:
    """A cluster that lives on this event loop."""

    def __init__(self, views: Callable[[], PageViews]) -> None:
        """`views` are those of the moment: of a recording, others after a step back."""
        self._views = views

    async def ask(self, question: Callable[[PageViews], T]) -> T:
        return question(self._views())

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        log = self._views().observed.log
        if log is None:
            yield
            return
        log.viewers += 1
        try:
            yield
        finally:
            log.viewers -= 1


async def keep_sampling(ask: Ask) -> None:
    """Note every second who is where in the queue, for ever."""
    while True:
        await ask(lambda views: views.queue.sample())
        await asyncio.sleep(_SAMPLE_SECONDS)


class Allowance:
    """CPU time of a thread that questions may take: so much of all that it uses, and a little more at a stretch."""

    def __init__(self, *, share: float = SHARE, most: float = AT_A_STRETCH) -> None:
        self._share = share
        self._most = self._left = most
        self._used: float | None = None

    def spend(self, seconds: float, used: float) -> None:
        """A question took so many seconds; `used` is what the thread has used until now, for whatever it did."""
        others = 0.0 if self._used is None else max(used - self._used - seconds, 0.0)
        self._left = min(self._left + others * self._share, self._most) - seconds
        self._used = used

    def pause(self) -> float:
        """Seconds to wait before the next question, if the thread does nothing but its own work meanwhile."""
        return min(max(-self._left, 0.0) / self._share, LONGEST_PAUSE)


class SchedulerThreadViews:
    """Carries questions to the thread of a scheduler at work. The first attaches the page to the scheduler; a while
    after the last, when no page is open, it is detached, and the scheduler has nothing to keep up for it."""

    def __init__(
        self,
        attach: Callable[[], ObservedCluster],
        detach: Callable[[ObservedCluster], None],
        call: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        """`attach` and `detach` are called in the thread, by `call`."""
        self._attach = attach
        self._detach = detach
        self._call = call
        self._views: PageViews | None = None
        """Touched in the thread only."""
        self._allowance = Allowance()
        self._is_busy = False
        self._pages = 0
        self._leaving: asyncio.TimerHandle | None = None
        self._sampling: asyncio.Task[None] | None = None
        self._ends: set[asyncio.Task[None]] = set()

    async def ask(self, question: Callable[[PageViews], T]) -> T:
        self._stay()
        if self._sampling is None:
            self._sampling = asyncio.create_task(keep_sampling(self.ask_unnoticed), name="queue history")
        try:
            return await self.ask_unnoticed(question)
        finally:
            self._leave_later()

    async def ask_unnoticed(self, question: Callable[[PageViews], T]) -> T:
        """The same, without counting as an open page."""
        if self._is_busy and (pause := self._allowance.pause()) > 0:
            await asyncio.sleep(pause)
        answer, error, seconds, used, self._is_busy = await self._call(lambda: self._asked(question))
        self._allowance.spend(seconds, used)
        if error is not None:
            raise error
        found: T = answer
        return found

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        self._pages += 1
        try:
            yield
        finally:
            self._pages -= 1
            self._leave_later()

    async def stop(self) -> None:
        """Let go of the scheduler."""
        self._stay()
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.gather(self._sampling, return_exceptions=True)
            self._sampling = None
        await self._call(self._let_go)

    def _asked(self, question: Callable[[PageViews], T]) -> tuple[T | None, Exception | None, float, float, bool]:
        """The answer or the error, the CPU time it took, that of all so far, and whether there are pods to try."""
        began = time.thread_time()
        answer, error = None, None
        if self._views is None:
            self._views = PageViews(self._attach())
        try:
            answer = question(self._views)
        except Exception as raised:
            error = raised
        queue, used = self._views.observed.queue, time.thread_time()
        return answer, error, used - began, used, queue is not None and queue.has_next

    def _let_go(self) -> None:
        if self._views is not None:
            self._detach(self._views.observed)
            self._views = None

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def _leave_later(self) -> None:
        self._stay()
        if self._pages == 0:
            self._leaving = asyncio.get_running_loop().call_later(LINGER, self._leave)

    def _leave(self) -> None:
        task = asyncio.create_task(self.stop(), name="page detaches")
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

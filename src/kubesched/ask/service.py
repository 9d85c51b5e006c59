"""One service for all questions to a cluster, under `kubesched serve` and the page: admission, deadlines, a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from threading import Event
from typing import TypeVar

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.ask.edits import TrialEdit
from kubesched.ask.hypothetical import apply_to_trial
from kubesched.ask.sources.following import ClusterAge, ClusterFeed, NotReadyError
from kubesched.ask.targets import RequestObjects
from kubesched.ask.trial import Trial
from kubesched.ask.what_if.what_if import Baselines, RequestedEdits, WhatIfOutcome, WhatIfQuestion, what_if
from kubesched.simulate.cluster import ClusterModel

T = TypeVar("T")
P = TypeVar("P")

TIMEOUT, SLOW_TIMEOUT = 10.0, 300.0
"""Seconds for an answer at once, and for one that takes long."""
MOST_WAITING = 8
"""How many slow questions may be under way: one is answered, the others wait for their turn."""

CheckTime = Callable[..., None]
"""To be called again and again by whatever takes long. Raises QuestionTimeoutError, or NotReadyError at the end."""


class BusyError(UserError):
    """Too many questions are under way."""


class QuestionTimeoutError(UserError):
    """A question that takes too long."""


class QueryService:
    """Answers questions about one cluster. To be used on the event loop where the cluster is kept current."""

    def __init__(
        self,
        cluster: ClusterModel,
        feed: ClusterFeed | None = None,
        *,
        stands_still: bool = False,
        timeout: float = TIMEOUT,
        slow_timeout: float = inf,
        most_waiting: int = MOST_WAITING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Of a cluster that `stands_still` copies and outcomes are kept. Timeouts are in seconds, for each question."""
        self.cluster = cluster
        self.feed = feed
        self.objects = RequestObjects(cluster)
        self._stands_still = stands_still
        self._timeout = timeout
        self.slow_timeout = slow_timeout
        self.most_waiting = most_waiting
        self._clock = clock
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="questions")
        self._is_closed = False
        self._copy: ClusterModel | None = None
        self._baselines: Baselines = {}

    def close(self) -> None:
        """No more answers: a slow question that is being answered is given up."""
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def age(self) -> ClusterAge | None:
        """How old the view of the cluster is. NotReadyError before there is a whole one."""
        return self.feed.age() if self.feed is not None else None

    # -- at once ------------------------------------------------------------------------------------------------------

    def ask_now(self, edits: Iterable[TrialEdit], question: Callable[[Trial, CheckTime], T]) -> T:
        """Answer a question on the cluster itself, without yielding to the event loop. The edits of the question are
        undone afterwards. RequestError, QuestionTimeoutError, PluginError."""
        check_time = self._time_check(self._timeout)
        with Trial(self.cluster) as trial:
            apply_to_trial(edits, trial, self.objects, check_time)
            return question(trial, check_time)

    # -- slowly -------------------------------------------------------------------------------------------------------

    def is_late(self) -> Callable[[], bool]:
        """A function that says when a slow question asked now has run out of time, for answers that may be partial."""
        deadline = self._clock() + self.slow_timeout
        return lambda: self._clock() > deadline

    async def ask_copy(self, question: Callable[[ClusterModel], T], *, is_read_only: bool = False) -> T:
        """Put a question to a copy of the cluster. One copy serves all questions that only read it. BusyError."""
        keeps = is_read_only and self._stands_still

        def answer(objects: tuple[KubeObject, ...], check_time: CheckTime) -> T:
            check_time()
            if not keeps:
                return question(self.cluster.copy(objects))
            self._copy = self._copy or self.cluster.copy(objects)
            return question(self._copy)

        return await self.run(self.all_objects, answer)

    async def what_if(self, question: WhatIfQuestion) -> tuple[WhatIfOutcome, ClusterAge | None]:
        """What the edits of a question would come to, and how old the view of the cluster is.

        NotReadyError, RequestError, BusyError, QuestionTimeoutError, PluginError; EditError for the page.
        """

        def prepare() -> tuple[RequestedEdits, tuple[KubeObject, ...], ClusterAge | None]:
            age = self.age()
            return RequestedEdits(question, self.objects), self.all_objects(), age

        def answer(
            prepared: tuple[RequestedEdits, tuple[KubeObject, ...], ClusterAge | None], check_time: CheckTime
        ) -> tuple[WhatIfOutcome, ClusterAge | None]:
            requested, objects, age = prepared
            check_time()
            requested.check(objects)
            outcome = what_if(
                objects,
                self.cluster.configuration,
                requested.edits,
                plugins=self.cluster.plugins,
                baselines=self._baselines if self._stands_still else {},
                progress=check_time,
            )
            return outcome, age

        return await self.run(prepare, answer)

    def all_objects(self) -> tuple[KubeObject, ...]:
        """Of a cluster that stands still in the order in which it was read, as commands read it."""
        return self.cluster.given if self._stands_still else self.cluster.objects()

    async def run(self, prepare: Callable[[], P], work: Callable[[P, CheckTime], T]) -> T:
        """Prepare on the event loop, where nothing else changes the cluster, and work in the thread, in turn.

        Records are never changed, so `work` may have them; it must not touch the cluster itself. If the caller is
        cancelled, it is stopped at its next check.
        """
        if self._waiting >= self.most_waiting:
            raise BusyError(f"{self._waiting} questions are under way, which is all there may be")
        given_up = Event()
        check_time = self._time_check(self.slow_timeout, given_up)
        self._waiting += 1
        try:
            async with self._turn:
                self._check_open()
                prepared = prepare()
                return await asyncio.get_running_loop().run_in_executor(self._thread, work, prepared, check_time)
        finally:
            given_up.set()
            self._waiting -= 1

    def _time_check(self, timeout: float, given_up: Event | None = None) -> CheckTime:
        deadline = self._clock() + timeout

        def check_time(*_: object) -> None:
            self._check_open()
            if given_up is not None and given_up.is_set():
                raise QuestionTimeoutError("nobody waits for the answer any more")
            if self._clock() > deadline:
                raise QuestionTimeoutError(f"took longer than {timeout:g} s")

        return check_time

    def _check_open(self) -> None:
        if self._is_closed:
            raise NotReadyError("the service is about to end")

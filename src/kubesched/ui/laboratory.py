"""Questions that take seconds or change what they are asked of: each is put to a copy of the cluster, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kubesched.api.errors import UserError
from kubesched.questions.what_if.answer import WhatIf
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.observed import Observed
from kubesched.ui.model.what_if import Question, WhatIfAsking, WhatIfView

T = TypeVar("T")

MOST_QUESTIONS = 8
"""How many may wait for their turn: whoever asks for more has forgotten about them."""


class BusyError(UserError):
    """Too many questions wait already."""


class Laboratory:
    """Asks one question at a time, so that the event loop has a core's attention in between.

    The objects are gathered on the event loop, where nothing else changes them; records are never changed afterwards.
    """

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="laboratory")
        self._waiting = 0
        self._kept: ClusterModel | None = None
        self._kept_for_changes: WhatIfAsking | None = None

    def close(self) -> None:
        """No more questions; one that is being answered is the last."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def ask(self, question: Callable[[ClusterModel], T], *, leaves_it_as_it_is: bool = False) -> T:
        """The answer on a copy of the cluster. BusyError if too many wait.

        Of a cluster that stands still one copy serves all questions that leave it as it is.
        """
        keeps = leaves_it_as_it_is and not self._observed.live
        cluster = self._observed.cluster
        objects = () if keeps and self._kept is not None else cluster.objects()

        def answer() -> T:
            if not keeps:
                return question(cluster.copy(objects))
            self._kept = self._kept or cluster.copy(objects)
            return question(self._kept)

        return await self.run(answer)

    async def what_if(self, question: Question) -> tuple[WhatIfView, WhatIf]:
        """What changes would come to. QuestionError, ChangeError, BusyError."""
        asking = self._kept_for_changes
        if asking is None:
            cluster = self._observed.cluster
            asking = WhatIfAsking(cluster.objects(), cluster.configuration, cluster.plugins)
            if not self._observed.live:
                self._kept_for_changes = asking
        return await self.run(lambda: asking.ask(question))

    async def run(self, work: Callable[[], T]) -> T:
        """Anything else that takes long, in its turn. It must not touch the cluster itself."""
        if self._waiting >= MOST_QUESTIONS:
            raise BusyError(f"{self._waiting} questions are being answered already; ask again in a while")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1

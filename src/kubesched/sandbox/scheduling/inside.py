"""A scheduler at work on the sandbox's API, in the same process and on the same event loop."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable

from kubesched.config import SchedulerConfiguration
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.extenders.originals import originals_for
from kubesched.framework.budget import LIMIT, TURN, Budget
from kubesched.framework.client import SchedulerMode
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import in_tree
from kubesched.sandbox.api import Api
from kubesched.sandbox.scheduling.client import ApiClient, ApiEventRecorder
from kubesched.sandbox.scheduling.feed import Feed
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop

_DELIVERED_AT_ONCE = 500
"""Changes that are delivered before others on the event loop get their turn."""


class SchedulerInside:
    """The scheduler, the changes it gets, and its writes."""

    def __init__(
        self,
        api: Api,
        configuration: SchedulerConfiguration,
        *,
        plugins: Registry | None = None,
        draw: Callable[[int], int] = random.randrange,
        listeners: Iterable[SchedulerListener] = (),
    ) -> None:
        """To be made on a running event loop, whose clock the scheduler goes by."""
        running = asyncio.get_running_loop()
        self._running = running
        self.originals = originals_for(configuration)
        """What extenders may see; None without such extenders."""
        self._extenders = extenders_of(configuration, self.originals)
        waiter = ObjectWaiter()
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=running.time,
                draw=draw,
                mode=SchedulerMode.BATCHED,
                budget=Budget(time.thread_time, turn=TURN, limit=LIMIT),
            ),
            configuration,
            ApiClient(api, recorder=ApiEventRecorder(api), waiter=waiter),
            plugins or in_tree(),
            extenders=self._extenders,
            listeners=(waiter, *listeners),
        )
        self._loop = SchedulingLoop(self.scheduler)
        news = lambda: running.call_soon(self._deliver)  # noqa: E731
        self._feed = Feed(
            api,
            news,
            kinds=self.scheduler.kinds,
            custom=self.scheduler.custom_resources,
            originals=self.originals,
        )

    @property
    def unfinished(self) -> int:
        """Attempts that are decided but not written yet."""
        return self._loop.unfinished

    async def run(self) -> None:
        """Until `stop`."""
        await self._loop.run()

    async def stop(self) -> None:
        """Finish what was decided, and decide no more."""
        self._feed.stop()
        await self._loop.stop(within=5.0)
        await close_all(self._extenders)

    def _deliver(self) -> None:
        # Never in the middle of a write: a change is delivered only after the call that made it has returned.
        if self._feed.deliver(self.scheduler, at_most=_DELIVERED_AT_ONCE):
            self._running.call_soon(self._deliver)

"""A scheduler at work on the sandbox's API, in the same process and on the same event loop."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.change import Change
from kubesched.api.custom import read_custom
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, KINDS, VERSIONS_BY_SERVER, WATCHED, Kind, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.daemon.tracing import tracing_of
from kubesched.daemon.tracing.configuration import MILLION, TracingConfiguration
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.framework.budget import LIMIT, TURN, Budget
from kubesched.framework.client import ClusterClient, SchedulerMode
from kubesched.framework.registry import Registry
from kubesched.kube.originals import Originals, originals_for
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.scheduler import Scheduler
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.scheduling.client import ApiClient, ApiEventRecorder
from kubesched_sandbox.store.memory import key_of

log = logging.getLogger(__name__)

_RECORDS = {
    resource: kind.record
    for kind in KINDS.values()
    for resource in VERSIONS_BY_SERVER.get(kind.resource, (kind.resource,))
}
_DELIVERED_AT_ONCE = 500
"""Changes that are delivered before others on the event loop get their turn."""


class SandboxScheduler:
    """The scheduler, the changes it gets, and its writes."""

    def __init__(
        self,
        api: Api,
        configuration: SchedulerConfiguration,
        *,
        plugins: Registry | None = None,
        draw: Callable[[int], int] = random.randrange,
        listeners: Iterable[SchedulerListener] = (),
        otlp: str = "",
    ) -> None:
        """Attempts are traced if `otlp` names a receiver. UserError if OpenTelemetry is not installed then.

        To be made on a running event loop, whose clock the scheduler goes by.
        """
        running = asyncio.get_running_loop()
        self._running = running
        self.originals = originals_for(configuration)
        """What extenders may see; None without such extenders."""
        self._extenders = extenders_of(configuration, self.originals)
        waiter = ObjectWaiter()
        client: ClusterClient = ApiClient(api, recorder=ApiEventRecorder(api), waiter=waiter)
        self._tracing = None
        if otlp:
            every = TracingConfiguration(endpoint=otlp, sampling_rate_per_million=MILLION)
            self._tracing = tracing_of(every, asked_by="--otlp")
        if self._tracing is not None:
            client = self._tracing.trace_calls(client, self._extenders)
            listeners = (*listeners, self._tracing.listener)
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=running.time,
                draw=draw,
                mode=SchedulerMode.BATCHED,
                budget=Budget(time.thread_time, turn=TURN, limit=LIMIT),
            ),
            configuration,
            client,
            plugins or in_tree(),
            extenders=self._extenders,
            listeners=(waiter, *listeners),
        )
        self._loop = SchedulingLoop(self.scheduler)
        news = lambda: running.call_soon(self._deliver)  # noqa: E731
        self._informer = ApiInformer(
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
        self._informer.stop()
        await self._loop.stop(within=5.0)
        await close_all(self._extenders)
        if self._tracing is not None:
            await self._tracing.stop()

    def _deliver(self) -> None:
        # Never in the middle of a write: a change is delivered only after the call that made it has returned.
        if self._informer.deliver(self.scheduler, at_most=_DELIVERED_AT_ONCE):
            self._running.call_soon(self._deliver)


class ApiInformer:
    """Hands changes in the API to the scheduler as typed records, in order and never in the middle of a write.

    `on_news` is called when there is something to `deliver`.
    """

    def __init__(
        self,
        api: Api,
        on_news: Callable[[], object],
        *,
        kinds: Iterable[Kind] = WATCHED,
        custom: Iterable[str] = (),
        originals: Originals | None = None,
    ) -> None:
        """`kinds` are followed from the beginning.

        `custom` are resources that only plugins know, followed as soon as they are defined.

        `originals` gets objects whole.
        """
        self._api = api
        self._originals = originals
        self._undefined = set(custom)
        self._looks_for_definitions = False
        self._unseen: deque[ApiEvent] = deque()
        self._known: dict[tuple[str, str, str], KubeObject] = {}
        self._on_news = on_news
        served = set(api.catalog.all())
        versions = [VERSIONS_BY_SERVER.get(kind.resource, (kind.resource,)) for kind in kinds]
        followed = (next((one for one in found if one in served), None) for found in versions)
        self._stops = [api.subscribe(tuple(filter(None, followed)), self._remember)]
        if self._undefined:
            self._stops.append(api.subscribe((CUSTOM_RESOURCE_DEFINITIONS,), self._definition_changed))

    def stop(self) -> None:
        """End the subscriptions."""
        for stop in self._stops:
            stop()

    def _definition_changed(self, event: ApiEvent) -> None:
        """It is served only once this write has returned, so `deliver` looks at it."""
        self._looks_for_definitions = True
        self._on_news()

    def _follow_definitions(self) -> None:
        self._looks_for_definitions = False
        for resource in self._api.catalog.all():
            name = _custom_name(resource)
            if name in self._undefined:
                self._undefined.discard(name)
                self._stops.append(self._api.subscribe((resource,), self._remember))

    def deliver(self, scheduler: Scheduler, *, at_most: int) -> bool:
        """Hand over the changes that are waiting. Whether there are more."""
        if self._looks_for_definitions:
            self._follow_definitions()
        for _ in range(at_most):
            if not self._unseen:
                return False
            event = self._unseen[0]
            key = (event.resource.path, *key_of(event.object))
            old = self._known.pop(key, None)
            new = None if event.type == "DELETED" else _record(event)
            if new is not None:
                self._known[key] = new
                self._keep_original(new, event)
            if old is not None or new is not None:
                scheduler.handle(Change(old, new))
            if self._originals is not None and old is not None:
                self._originals.forget(old, new)
            self._unseen.popleft()  # only now: while there is something unseen, `on_news` need not be called
        return bool(self._unseen)

    def _keep_original(self, new: KubeObject, event: ApiEvent) -> None:
        """For extenders: they may read what the scheduler does not."""
        if self._originals is not None and self._originals.wants(new):
            metadata = {name: value for name, value in event.object["metadata"].items() if name != "managedFields"}
            header = {"apiVersion": event.resource.api_version, "kind": event.resource.kind}
            self._originals.keep(new, msgspec.json.encode({**header, **event.object, "metadata": metadata}))

    def _remember(self, event: ApiEvent) -> None:
        self._unseen.append(event)
        if len(self._unseen) == 1:
            self._on_news()


def _record(event: ApiEvent) -> KubeObject | None:
    """The object as the scheduler sees it. Pods that have finished are none of its business any more."""
    kind = _RECORDS.get(event.resource)
    try:
        if kind is None:
            return read_custom(_custom_name(event.resource), event.object)
        record = msgspec.convert(event.object, kind)
    except msgspec.ValidationError as error:
        name = "/".join(filter(None, key_of(event.object)))
        log.error("%s %s cannot be read and is left out: %s", event.resource.kind, name, error)
        return None
    return None if isinstance(record, Pod) and record.is_finished else record


def _custom_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.version}.{resource.group}"

"""Performs the operations of a workload from outside, as upstream's harness does from inside, and measures."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import singledispatchmethod
from typing import Any

from bench.peer.cases import Workload
from bench.peer.client import Api, resource_of
from bench.peer.load import Load, many, paced
from bench.peer.measurement import Meter, Result
from bench.peer.operations import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    CreateResourceDriver,
    DeletePods,
    ForgetHistory,
    FreezeScheduler,
    Operation,
    ReplaceScheduler,
    Sleep,
    StartCollectingMetrics,
    StartScheduler,
    StopCollectingMetrics,
    ThawScheduler,
    UpdateAny,
)
from bench.peer.pods import PodWatch
from bench.peer.schedulers import Scheduler
from kubesched.api.kinds import PODS
from kubesched.kube.errors import KubeError

_LONGEST_REST = 10.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Executor:
    """One workload, one scheduler."""

    def __init__(
        self,
        workload: Workload,
        api: Api,
        watch: PodWatch,
        start_scheduler: Callable[[], Scheduler],
        forget_history: Callable[[], None],
    ) -> None:
        self._workload = workload
        self._api = api
        self._watch = watch
        self._start_scheduler = start_scheduler
        self._forget_history = forget_history
        self._load = Load(api, watch, workload.folder)
        self._waited_for: dict[str, int] = defaultdict(int)
        """Pods by namespace that a barrier has to wait for."""
        self._number = 0
        self._background: list[asyncio.Task[None]] = []
        self._meter: Meter | None = None
        self.result: Result | None = None

    async def run(self) -> None:
        operations = self._workload.operations()
        if not any(isinstance(operation, StartScheduler) for operation in operations):
            await self._start()
        try:
            for number, operation in enumerate(operations):
                self._number = number
                await self._do(operation)
        finally:
            await self._end_background()

    async def _start(self) -> None:
        self._scheduler = self._start_scheduler()
        await asyncio.to_thread(self._scheduler.wait_until_ready)

    async def _end_background(self) -> None:
        for task in self._background:
            task.cancel()
        for task in self._background:
            with contextlib.suppress(asyncio.CancelledError, KubeError):
                await task
        self._background.clear()

    @singledispatchmethod
    async def _do(self, operation: Operation) -> None:
        raise TypeError(f"no such operation: {operation}")

    @_do.register
    async def _(self, operation: CreateNodes) -> None:
        await self._load.nodes(operation, f"node-{self._number}-")

    @_do.register
    async def _(self, operation: CreateNamespaces) -> None:
        path = operation.namespace_template_path
        for index in range(operation.count):
            template = self._load.template(path) if path else None
            await self._api.ensure_namespace(f"{operation.prefix}-{index}", template)

    @_do.register
    async def _(self, operation: CreatePods) -> None:
        await self._create_pods(operation, operation.namespace or f"namespace-{self._number}")

    @_do.register
    async def _(self, operation: CreatePodSets) -> None:
        for index in range(operation.count):
            await self._create_pods(operation.create_pods_op, f"{operation.namespace_prefix}-{index}")

    async def _create_pods(self, operation: CreatePods, namespace: str) -> None:
        await self._api.ensure_namespace(namespace)
        if operation.collect_metrics:
            await self._start_meter((namespace,), {})
        default = self._workload.default_pod_template
        if operation.steady_state:
            await self._keep_steady(operation, namespace)
        else:
            await self._load.pods(operation, namespace, default)
            if operation.skip_wait_to_completion:
                self._waited_for[namespace] += operation.count
            else:
                await self._watch.until_bound(namespace, operation.count)
        if operation.collect_metrics:
            await self._stop_meter()

    async def _keep_steady(self, operation: CreatePods, namespace: str) -> None:
        """As many pods again and again: each time all are bound, they go and others come."""
        deadline = time.monotonic() + seconds(operation.duration)
        while time.monotonic() < deadline:
            await self._load.pods(operation, namespace, self._workload.default_pod_template)
            await self._watch.until_bound(namespace, operation.count)
            await self._api.delete_all(PODS, namespace, at_once=True)
            while self._watch.names(namespace, {}):
                await asyncio.sleep(0.005)

    @_do.register
    async def _(self, operation: CreateAny) -> None:
        if operation.namespace:
            await self._api.ensure_namespace(operation.namespace)
        count, path = operation.count, operation.template_path
        await many(count, lambda index: self._api.create(self._load.template(path, index, count), operation.namespace))

    @_do.register
    async def _(self, operation: UpdateAny) -> None:
        async def update(index: int) -> None:
            obj = self._load.template(operation.template_path, index, operation.count)
            for subresource in operation.subresources or ("",):
                await self._api.update(obj, operation.namespace, subresource)
            await self._api.update(obj, operation.namespace, "status")

        await paced(range(operation.count), operation.update_per_second or 1000, update)

    @_do.register
    async def _(self, operation: DeletePods) -> None:
        deleting = self._delete_pods(operation)
        if operation.skip_wait_to_completion:
            self._background.append(asyncio.create_task(deleting))
        else:
            await deleting

    async def _delete_pods(self, operation: DeletePods) -> None:
        names = self._watch.names(operation.namespace, operation.label_selector)
        if operation.delete_pods_per_second:
            await paced(
                range(len(names)),
                operation.delete_pods_per_second,
                lambda index: self._api.delete(PODS, operation.namespace, names[index]),
            )
        else:
            selector = ",".join(f"{key}%3D{value}" for key, value in operation.label_selector.items())
            await self._api.delete_all(PODS, operation.namespace, selector, at_once=False)

    @_do.register
    async def _(self, operation: Churn) -> None:
        namespace = operation.namespace or f"namespace-{self._number}"
        await self._api.ensure_namespace(namespace)
        self._background.append(asyncio.create_task(self._churn(operation, namespace)))

    async def _churn(self, operation: Churn, namespace: str) -> None:
        templates = [self._load.template(path) for path in operation.template_paths]
        slots: list[list[str]] = [[""] * (operation.number or 1) for _ in templates]
        turn = 0
        while operation.mode == "recreate" or not operation.number or turn < operation.number:
            await asyncio.sleep(operation.interval_milliseconds / 1000)
            for template, names in zip(templates, slots, strict=True):
                slot = turn % len(names)
                names[slot] = await self._turn_over(
                    template, namespace, names[slot] if operation.mode == "recreate" else ""
                )
            turn += 1

    async def _turn_over(self, template: dict[str, Any], namespace: str, name: str) -> str:
        """The object of this name goes; without a name, one comes. The name of what is there then."""
        resource = resource_of(template)
        within = namespace if resource.namespaced else ""
        if name:
            await self._api.delete(resource, within, name)
            return ""
        return await self._api.create(template, within)

    @_do.register
    async def _(self, operation: Barrier) -> None:
        is_bound = operation.stage_requirement == "Scheduled"
        until = self._watch.until_bound if is_bound else self._watch.until_tried
        for namespace in operation.namespaces or tuple(self._waited_for):
            await until(namespace, self._waited_for[namespace], operation.label_selector)
            if is_bound:
                del self._waited_for[namespace]

    @_do.register
    async def _(self, operation: Sleep) -> None:
        await asyncio.sleep(seconds(operation.duration))

    @_do.register
    async def _(self, operation: StartCollectingMetrics) -> None:
        await self._start_meter(operation.namespaces, operation.label_selector)

    @_do.register
    async def _(self, operation: StartScheduler) -> None:
        self._scheduler = self._start_scheduler()
        self._meter = Meter.from_birth(self._scheduler, self._watch, operation.namespaces)
        async with asyncio.TaskGroup() as both:
            both.create_task(asyncio.to_thread(self._scheduler.wait_until_ready))
            both.create_task(self._meter.note_first_binding())

    @_do.register
    async def _(self, operation: StopCollectingMetrics) -> None:
        await self._stop_meter()

    @_do.register
    async def _(self, operation: FreezeScheduler) -> None:
        self._scheduler.process.send_signal(signal.SIGSTOP)

    @_do.register
    async def _(self, operation: ThawScheduler) -> None:
        self._scheduler.process.send_signal(signal.SIGCONT)

    @_do.register
    async def _(self, operation: ReplaceScheduler) -> None:
        leading = self._scheduler
        await self._start()
        await self._scheduler.rest(_LONGEST_REST)
        await asyncio.to_thread(leading.end)
        self._meter = Meter(self._scheduler, self._watch, operation.namespaces, {})

    @_do.register
    async def _(self, operation: ForgetHistory) -> None:
        await asyncio.to_thread(self._forget_history)

    @_do.register
    async def _(self, operation: CreateResourceDriver) -> None:
        await self._load.driver(operation.driver_name, operation.nodes, operation.max_claims_per_node)

    @_do.register
    async def _(self, operation: AllocResourceClaims) -> None:
        await self._load.allocate(operation.namespace)

    async def _start_meter(self, namespaces: tuple[str, ...], selector: Mapping[str, str]) -> None:
        """What was asked of the scheduler before is not counted."""
        await self._scheduler.rest(_LONGEST_REST)
        self._meter = Meter(self._scheduler, self._watch, namespaces, selector)

    async def _stop_meter(self) -> None:
        """What the scheduler still writes about these pods is."""
        assert self._meter is not None
        await self._end_background()
        await self._scheduler.rest(_LONGEST_REST)
        self.result = self._meter.result()


def seconds(duration: str) -> float:
    """A duration as Go writes it: 10s, 1m30s, 500ms."""
    parts = re.findall(r"([\d.]+)(ms|[smh])", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"not a duration: {duration!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)

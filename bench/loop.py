"""Measuring the whole loop: a pod's turn, the decision, the binding, and the watch that confirms it."""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections import deque
from typing import Any

from msgspec.structs import replace

from bench import clusters
from bench.measure import cpu_us
from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, NodeStatus
from kubesched.api.pod import Pod, PodCondition, SchedulingGate
from kubesched.daemon.metrics.listener import SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.budget import Budget
from kubesched.framework.client import ClusterClient, SchedulerMode
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.run_now import run_now

PODS = 10_000
WARM = 20
ALONE = 1000
UNDER_WAY = 200
CONDITIONS = 1000
BOUND = PodCondition(type="PodScheduled", status="True")


class Binder(ClusterClient):
    """Binds in memory. What was bound waits for the watch, as a version of its own."""

    def __init__(self) -> None:
        self.unseen: deque[Change[KubeObject]] = deque()
        self.bound = 0

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.bound += 1
        seen = replace(
            pod,
            metadata=replace(pod.metadata, resource_version=str(self.bound)),
            spec=replace(pod.spec, node_name=node_name),
            status=replace(pod.status, conditions=(BOUND,)),
        )
        self.unseen.append(Change(pod, seen))

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        pass

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        pass


class Loop:
    """A scheduler with its binder, in virtual time."""

    def __init__(
        self,
        nodes: int,
        binder: Binder | None = None,
        mode: SchedulerMode = SchedulerMode.PARITY,
        budget: Budget | None = None,
    ) -> None:
        self.now = 0.0
        self.binder = binder or Binder()
        draw = random.Random(0).randrange
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: self.now, draw=draw, mode=mode, budget=budget),
            config.default(),
            self.binder,
            in_tree(),
        )
        self.nodes = [clusters.node(i) for i in range(nodes)]
        for node in self.nodes:
            self.scheduler.handle(Change(new=node))

    def run(self, attempts: int) -> None:
        """So many attempts, after each of which the watch delivers its result."""
        scheduler, unseen = self.scheduler, self.binder.unseen
        for _ in range(attempts):
            attempt = scheduler.pop()
            assert attempt is not None
            scheduler.decide(attempt)
            run_now(scheduler.finish(attempt))
            while unseen:
                scheduler.handle(unseen.popleft())


def binding(kind: str, nodes: int) -> float:
    """CPU microseconds per pod, from its turn until the watch has shown it bound."""
    loop = Loop(nodes)
    for i in range(PODS):
        loop.scheduler.handle(Change(new=clusters.PLACED[kind](i)))
    loop.run(WARM)
    spent = cpu_us(lambda: loop.run(PODS - WARM))
    assert loop.binder.bound == PODS
    return spent / (PODS - WARM)


def under_way_kb(kind: str, nodes: int) -> float:
    """What a pod holds while its binding is being written, its place in the state included."""
    loop = Loop(nodes)
    for i in range(WARM + UNDER_WAY):
        loop.scheduler.handle(Change(new=clusters.PLACED[kind](i)))
    loop.run(WARM)
    tracemalloc.start()
    try:
        attempts = [loop.scheduler.pop() for _ in range(UNDER_WAY)]
        for attempt in attempts:
            assert attempt is not None
            loop.scheduler.decide(attempt)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / UNDER_WAY / 1000
    finally:
        tracemalloc.stop()


def coming_alone(nodes: int) -> float:
    """As `binding`, with 2 ms between two pods: whatever else runs on the machine has its caches meanwhile.

    As in a daemon, there are metrics of it.
    """
    loop = Loop(nodes)
    profiles = loop.scheduler.profiles
    metrics = SchedulerMetrics(MetricsRegistry(), profiles, clock=time.perf_counter, draw=random.random)
    loop.scheduler.listeners.append(metrics)
    for i in range(WARM + ALONE):
        loop.scheduler.handle(Change(new=clusters.PLACED["basic"](i)))
    loop.run(WARM)

    def run() -> None:
        for _ in range(ALONE):
            loop.run(1)
            time.sleep(0.002)

    return cpu_us(run) / ALONE


def beside_gated(gated: int) -> float:
    """CPU microseconds per pod that is bound to a node with thousands of pods, of which another is deleted each time.

    Pods that are gated, many of them, must not be looked at.
    """
    loop, many = Loop(nodes=1), "1000000"
    offered: dict[str, str | int | float] = {"cpu": many, "memory": f"{many}Gi", "pods": many}
    node = replace(loop.nodes[0], status=NodeStatus(allocatable=offered))
    loop.scheduler.handle(Change(loop.nodes[0], node))
    for i in range(gated):
        pod = clusters.pod(i, "gated")
        gates = (SchedulingGate(name="example.com/wait"),)
        loop.scheduler.handle(Change(new=replace(pod, spec=replace(pod.spec, scheduling_gates=gates))))
    for i in range(2 * PODS):
        loop.scheduler.handle(Change(new=clusters.pod(i, "basic")))
    loop.run(PODS)
    leaving = [placed.pod for placed in loop.scheduler.state.pods.pods_on(0)]

    def run() -> None:
        for pod in leaving:
            loop.run(1)
            loop.scheduler.handle(Change(old=pod))

    spent = cpu_us(run)
    assert loop.scheduler.state.nodes.pod_count[0] == loop.binder.bound - PODS == PODS
    return spent / PODS


class Waiting:
    """Very many pods that no node has room for, and events that help none of them."""

    def __init__(self, pods: int, kinds: int = 100, nodes: int = 20) -> None:
        self.loop = Loop(nodes)
        self._events = 0
        for i in range(pods):
            self.loop.scheduler.handle(Change(new=clusters.pod(i, f"too-big-{i % kinds}", cpu=f"{64 + i % kinds}")))
        self.loop.run(pods)
        self._pods = pods
        self._check()

    def node_label_changes(self) -> float:
        """A label of a node: nothing that a pod without room waits for."""
        self._events += 1
        old = self.loop.nodes[0]
        labels = {**old.metadata.labels, "generation": str(self._events)}
        new = self.loop.nodes[0] = replace(old, metadata=replace(old.metadata, labels=labels))
        return self._spent_on(lambda: self.loop.scheduler.handle(Change(old, new)))

    def small_node_comes(self) -> float:
        """A node as small as those that are there already."""
        node = self._another_node()
        return self._spent_on(lambda: self.loop.scheduler.handle(Change(new=node)))

    def other_pod_is_bound(self) -> float:
        """A pod comes that leaves no more room than there was: the price that every binding pays."""
        self._events += 1
        pod = clusters.pod(self._events, "other", node_name=self.loop.nodes[0].name)
        return self._spent_on(lambda: self.loop.scheduler.handle(Change(new=pod)))

    def conditions_are_written(self) -> float:
        """The watch shows why a pod was rejected, which every rejected pod pays once: for each of many."""
        self._events += 1
        why = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=f"no {self._events}")
        changes = []
        for old in [queued.pod for queued in self.loop.scheduler.queue.unschedulable()[:CONDITIONS]]:
            meta = replace(old.metadata, resource_version=str(self._events))
            changes.append(Change(old, replace(old, metadata=meta, status=replace(old.status, conditions=(why,)))))

        def handle_all() -> None:
            for change in changes:
                self.loop.scheduler.handle(change)

        return self._spent_on(handle_all) / CONDITIONS

    def _another_node(self) -> Node:
        self.loop.nodes.append(clusters.node(len(self.loop.nodes)))
        return self.loop.nodes[-1]

    def _spent_on(self, event: Any) -> float:
        spent = cpu_us(event)
        self._check()
        return spent

    def _check(self) -> None:
        assert len(self.loop.scheduler.queue.unschedulable()) == self._pods

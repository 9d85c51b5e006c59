"""Measuring memory over an hour of virtual time in which everything comes and goes and nothing grows."""

from __future__ import annotations

import gc
import tracemalloc
from collections import deque

from msgspec.structs import replace

from bench import clusters
from bench.loop import Loop
from kubesched.api.change import Change
from kubesched.api.pod import Pod

NODES = 500
PODS_PER_SECOND = 4
LIFETIME = 120
APPS = 10
SECONDS = 3600
WARM_SECONDS = SECONDS // 4
"""By then whatever is cached per kind of pod has been seen many times."""


class Churn:
    """A few pods a second: most are bound and deleted, some never fit. Each minute brings another app and a node."""

    def __init__(self) -> None:
        self.loop = Loop(NODES)
        self._living: deque[tuple[float, Pod]] = deque()
        self._made = 0

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.loop.now += 1
            self._second(int(self.loop.now))

    def held_mb(self) -> float:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / 1e6

    def _second(self, second: int) -> None:
        scheduler = self.loop.scheduler
        scheduler.flush_backoff()
        if second % 30 == 0:
            scheduler.flush_leftovers()
        if second % 60 == 0:
            self._replace_a_node(second // 60)
        for _ in range(PODS_PER_SECOND):
            self._create(app=f"app-{second // 60 % APPS}")
        self._try_all()
        while self._living and self._living[0][0] <= self.loop.now - LIFETIME:
            pod = self._living.popleft()[1]
            scheduler.handle(Change(old=scheduler.pods[pod.key]))

    def _create(self, app: str) -> None:
        self._made += 1
        too_big = self._made % 10 == 0
        pod = clusters.pod(self._made, app, cpu="64" if too_big else f"{100 + self._made % 5}m")
        self._living.append((self.loop.now, pod))
        self.loop.scheduler.handle(Change(new=pod))
        if too_big:
            changed = replace(pod, metadata=replace(pod.metadata, labels={**pod.metadata.labels, "seen": "yes"}))
            self.loop.scheduler.handle(Change(pod, changed))

    def _replace_a_node(self, minute: int) -> None:
        at = minute % NODES
        self.loop.scheduler.handle(Change(old=self.loop.nodes[at]))
        self.loop.nodes[at] = clusters.node(NODES + minute)
        self.loop.scheduler.handle(Change(new=self.loop.nodes[at]))

    def _try_all(self) -> None:
        while self.loop.scheduler.queue.active():
            self.loop.run(1)


def memory_mb() -> tuple[float, float]:
    """What is held after the first quarter of the hour, and after all of it."""
    tracemalloc.start()
    churn = Churn()
    churn.pass_time(WARM_SECONDS)
    before = churn.held_mb()
    churn.pass_time(SECONDS - WARM_SECONDS)
    after = churn.held_mb()
    tracemalloc.stop()
    return before, after


def memory_of_kinds_mb(nodes: int = 20, pods: int = 3000) -> tuple[float, float]:
    """A small cluster where no two pods are alike, as those of Jobs: held after half of them, and after all."""
    tracemalloc.start()
    loop = Loop(nodes)
    held = []
    for half in range(2):
        for i in range(pods // 2):
            pod = clusters.pod(i, f"job-{half}-{i}", cpu="1m", memory="1Mi")
            loop.scheduler.handle(Change(new=pod))
            loop.run(1)
            loop.scheduler.handle(Change(old=loop.scheduler.pods[pod.key]))
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0] / 1e6)
    tracemalloc.stop()
    return held[0], held[1]

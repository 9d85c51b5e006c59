"""The largest cluster that was ever published: 130,000 nodes with 500,000 placed pods of 1,000 kinds, in process."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from bench import clusters
from bench.measure import cpu_us, engine_on, place
from kubesched import config
from kubesched.api.pod import Pod
from kubesched.ask.explain import explain
from kubesched.framework.decision import Outcome
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.sources import observe_manifests
from kubesched.ui.views import PageViews

NODES, PODS, KINDS = 130_000, 500_000, 1000
WAITING, WAITING_KINDS, GANG = 100_000, 50, 10_000
DECIDED, WARM = 300, 20
_FIRST, _NOWHERE, _PREEMPTING = 30, 30, 10
_TOO_BIG = "21"
"""More than any node has left, and less than it has: four cpus are taken by each of its three or four pods."""


class MegaCluster:
    """The cluster, and what deciding and asking cost on it."""

    def __init__(self, nodes: int = NODES, pods: int = PODS, *, traced: bool = True) -> None:
        """If it is `traced`, what the state holds is measured, which takes a minute more."""
        self._nodes = nodes
        if traced:
            tracemalloc.start()
        self._cluster = ClusterModel([*map(clusters.node, range(nodes)), *_placed(pods, nodes)], config.default())
        gc.collect()
        self.held_mb = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        self._state = self._cluster.state
        assert self._state.pods.size == pods
        self._engine = engine_on(self._state)
        self._made = 0

    def deciding(self, kind: str) -> float:
        """CPU microseconds per pod."""
        special = {
            "first-of-kind": self._first_of_kind,
            "fits-nowhere": self._fitting_nowhere,
            "preemption": self._preempting,
        }
        return special[kind]() if kind in special else self._placing(kind)

    def _placing(self, kind: str) -> float:
        """Of a kind that was seen before."""
        pods = [clusters.PLACED[kind](self._another()) for _ in range(WARM + DECIDED)]
        place(self._engine, self._state, pods[:WARM])
        return cpu_us(lambda: place(self._engine, self._state, pods[WARM:])) / DECIDED

    def _first_of_kind(self) -> float:
        """No two pods have anything in common."""
        at = [self._another() for _ in range(_FIRST)]
        pods = [clusters.pod(i, f"new-{i}", cpu=f"{101 + i % 900}m", memory=f"{501 + i}Mi") for i in at]
        return cpu_us(lambda: place(self._engine, self._state, pods)) / _FIRST

    def _fitting_nowhere(self) -> float:
        """No node has room, while nodes change."""
        pods = [self._wanting(_TOO_BIG) for _ in range(_NOWHERE)]
        self._engine.decide(pods[0])

        def run() -> None:
            for row, pod in enumerate(pods):
                self._state.nodes.load_changed(row)
                decision = self._engine.decide(pod)
                assert decision.outcome is Outcome.UNSCHEDULABLE, decision.outcome

        return cpu_us(run) / _NOWHERE

    def _preempting(self) -> float:
        """Every node has room if pods go; they go."""
        pods = [self._wanting("30", priority=100) for _ in range(_PREEMPTING + 1)]
        self._preempt(pods[:1])
        return cpu_us(lambda: self._preempt(pods[1:])) / _PREEMPTING

    def explaining(self) -> Iterator[tuple[str, float]]:
        """CPU milliseconds of an explanation, by kind of pod."""
        for kind, cpu, priority in (("fits", "1", 0), ("too-big", _TOO_BIG, 0), ("urgent", _TOO_BIG, 100)):
            yield kind, cpu_us(partial(self._explain, self._wanting(cpu, priority=priority))) / 1000

    def page(self) -> tuple[float, float]:
        """CPU milliseconds of what a page asks for first, its map of all nodes, and megabytes of it."""
        views = PageViews(observe_manifests(self._cluster, "mega"))
        made: list[Any] = []

        def run() -> None:
            made.append(msgspec.json.encode((views.about(), views.map.whole(clusters.ZONE))))

        return cpu_us(run) / 1000, len(made[0]) / 1e6

    def _explain(self, pod: Pod) -> None:
        assert explain(self._cluster, pod, with_remedies=False).explanation.pod

    def _preempt(self, pods: list[Pod]) -> None:
        for pod in pods:
            result = self._engine.decide(pod).post_filter
            assert result is not None
            assert result.nominated
            for victim in result.victims:
                self._state.delete(victim.pod)
            self._state.assume(pod, result.nominated)

    def _wanting(self, cpu: str, priority: int = 0) -> Pod:
        return clusters.pod(self._another(), "large", cpu=cpu, priority=priority)

    def _another(self) -> int:
        self._made += 1
        return self._made


def _placed(pods: int, nodes: int) -> Iterator[Pod]:
    """As many kinds as there are Deployments in a very large cluster, all mixed."""
    for i in range(pods):
        yield clusters.pod(i, f"kind-{i % KINDS}", cpu="4", node_name=f"node-{i % nodes:05d}", priority=i % 3)

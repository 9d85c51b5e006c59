"""Measuring: CPU microseconds per pod of schedule + assume, on one core, and memory of the state."""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable

from bench import clusters
from kubesched import config
from kubesched.api.pod import Pod
from kubesched.framework.decision import Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import Profile
from kubesched.plugins.registry import in_tree
from kubesched.state.cluster import ClusterState

PODS = 1000


def engine_on(state: ClusterState) -> Engine:
    """The default profile, every node evaluated."""
    registry = in_tree()
    profiles = [Profile(profile, registry, PluginContext()) for profile in config.default().profiles]
    return Engine(state, profiles, draw=random.Random(0).randrange)


def cpu_us(action: Callable[[], None]) -> float:
    gc.collect()
    start = time.process_time()
    action()
    return (time.process_time() - start) * 1e6


def placing(kind: str, nodes: int) -> float:
    """Pods of one kind, one after another, on an empty cluster."""
    state = clusters.empty_cluster(nodes)
    engine = engine_on(state)
    pods = [clusters.PLACED[kind](i) for i in range(min(PODS, pods_that_fit_apart(nodes)))]
    place(engine, state, pods[:20])  # the first of its kind is measured by itself

    def run() -> None:
        place(engine, state, pods[20:])

    return cpu_us(run) / len(pods[20:])


def pods_that_fit_apart(nodes: int) -> int:
    """With anti-affinity to each other, and some nodes left to choose from."""
    return nodes * 9 // 10


def first_of_kind(nodes: int, kinds: int = 50) -> float:
    """Pods that have nothing in common with any before them."""
    state = clusters.empty_cluster(nodes)
    engine = engine_on(state)
    place(engine, state, [clusters.pod(0, "warm")])
    pods = [clusters.pod(i, f"kind-{i}", cpu=f"{101 + i}m", memory=f"{501 + i}Mi") for i in range(kinds)]
    return cpu_us(lambda: place(engine, state, pods)) / kinds


def fitting_nowhere(nodes: int, pods: int = 200, *, while_cluster_changes: bool = True) -> float:
    """Pods that no node has room for, with the message that says so. If nothing changes, they are told the same."""
    state = clusters.full_cluster(nodes)
    engine = engine_on(state)
    wanted = [clusters.pod(i, "too-big", cpu="8") for i in range(pods)]

    def run() -> None:
        for one in wanted:
            if while_cluster_changes:
                state.nodes.load_changed(0)
            decision = engine.decide(one)
            assert decision.outcome is Outcome.UNSCHEDULABLE
            assert decision.message.startswith(f"0/{nodes} nodes are available")

    return cpu_us(run) / pods


def preempting(nodes: int, pods: int = 20) -> float:
    """A pod of high priority on a full cluster: every node is a candidate; the nomination is carried out."""
    state = clusters.full_cluster(nodes)
    engine = engine_on(state)
    engine.decide(clusters.pod(0, "warm", cpu="8", priority=100))
    wanted = [clusters.pod(i, "vip", cpu="8", priority=100) for i in range(pods)]

    def run() -> None:
        for one in wanted:
            decision = engine.decide(one)
            result = decision.post_filter
            assert result is not None
            assert result.nominated
            for victim in result.victims:
                state.delete(victim.pod)
            state.assume(one, result.nominated)

    return cpu_us(run) / pods


def memory_mb(nodes: int = 5000, pods: int = 50_000) -> float:
    """What the state holds for a cluster of this size, the records included."""
    tracemalloc.start()
    state = clusters.full_cluster(nodes, pods // nodes)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    assert state.pods.size == pods
    return held


def place(engine: Engine, state: ClusterState, pods: list[Pod]) -> None:
    """Decide and assume, one pod after another."""
    for one in pods:
        decision = engine.decide(one)
        assert decision.outcome is Outcome.SCHEDULED, decision.message
        assert decision.cycle is not None
        state.assume(one, decision.node, decision.cycle.facts)

"""Pod groups: what it costs to decide a gang, to find it a rack, to make room for it, and to let others wait."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise

from bench.measure import cpu_us
from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod_groups import (
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from kubesched.config.features import Features
from kubesched.framework.client import ClusterClient
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = 5000
RACK = "topology.kubernetes.io/rack"
_PER_RACK = 10
_GATES = Features(pod_groups=True, gang_scheduling=True, group_preemption=True, group_topology=True)


def gang_ms(size: int, nodes: int = NODES) -> float:
    """A gang of identical pods that fits, decided and assumed."""
    scheduler = _scheduler(nodes=nodes)
    _see(scheduler, _gang("warm", 1), *_members("warm", 1), _gang("g", size), *_members("g", size))
    _decide(scheduler)
    return _cpu_ms(lambda: _decide(scheduler))


def rack_ms(size: int = 100) -> float:
    """A gang that must stay in one of 500 racks, which all have room for it."""
    scheduler = _scheduler(cpu="16")
    _see(scheduler, _gang("warm", 1), *_members("warm", 1), _gang("g", size, rack=True), *_members("g", size))
    _decide(scheduler)
    return _cpu_ms(lambda: _decide(scheduler))


def preemption_ms(size: int = 100) -> float:
    """A gang on a full cluster, all pods of which are less important."""
    scheduler = _scheduler(cpu="4")
    for i in range(NODES):
        _see(scheduler, make_pod(f"low-{i}").requests(cpu="4").on(f"n{i}").build())
    _see(scheduler, _gang("g", size, priority=100), *_members("g", size, priority=100))
    return _cpu_ms(lambda: _decide(scheduler))


def event_ms(gangs: int = 1000, size: int = 10) -> float:
    """A change of a node that helps none of many gangs that wait."""
    scheduler = _scheduler(cpu="4")
    for i in range(gangs):
        _see(scheduler, _gang(f"g{i}", size), *_members(f"g{i}", size, cpu="9"))
    while (attempt := scheduler.pop()) is not None:
        scheduler.decide(attempt)
    old = make_node("n0").capacity(cpu="4").build()
    new = make_node("n0").capacity(cpu="5").build()
    return _cpu_ms(lambda: scheduler.handle(Change(old, new)))


def beside_waiting_gangs(gangs: int = 10_000, rounds: int = 15) -> tuple[float, float]:
    """An ordinary pod, and a change of a node, beside many gangs of two of which one pod never comes."""
    scheduler = _scheduler()
    for i in range(gangs):
        _see(scheduler, _gang(f"g{i}", 2), *_members(f"g{i}", 1))

    def decide_all() -> None:
        for pod in pods:
            scheduler.handle(Change(new=pod))
            attempt = scheduler.pop()
            assert attempt is not None
            scheduler.decide(attempt)

    def change_nodes() -> None:
        for old, new in pairwise(nodes):
            scheduler.handle(Change(old, new))

    pods = [make_pod(f"ordinary-{i}").requests(cpu="1").build() for i in range(rounds)]
    nodes = [make_node("n0").capacity(cpu=str(32 + i), memory="64Gi").build() for i in range(rounds + 1)]
    return cpu_us(decide_all) / rounds / 1000, cpu_us(change_nodes) / rounds / 1000


def _scheduler(cpu: str = "32", nodes: int = NODES) -> Scheduler:
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: among // 2),
        config.default(_GATES),
        ClusterClient(),
        in_tree(),
    )
    for i in range(nodes):
        node = make_node(f"n{i}").capacity(cpu=cpu, memory="64Gi").zone(f"z{i % 3}")
        scheduler.handle(Change(new=node.label({RACK: f"r{i // _PER_RACK}"}).build()))
    return scheduler


def _gang(name: str, size: int, *, rack: bool = False, priority: int = 0) -> PodGroup:
    constraints = SchedulingConstraints(topology=(TopologyConstraint(key=RACK),)) if rack else None
    policy = SchedulingPolicy(gang=GangPolicy(min_count=size))
    return PodGroup(
        api_version="scheduling.k8s.io/v1beta1",
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        spec=PodGroupSpec(scheduling_policy=policy, scheduling_constraints=constraints, priority=priority),
    )


def _members(name: str, size: int, *, cpu: str = "1", priority: int = 0) -> list[PodBuilder]:
    return [make_pod(f"{name}-{i}").group(name).requests(cpu=cpu).priority(priority) for i in range(size)]


def _see(scheduler: Scheduler, *objects: KubeObject | PodBuilder) -> None:
    for obj in objects:
        scheduler.handle(Change(new=obj if isinstance(obj, KubeObject) else obj.build()))


def _decide(scheduler: Scheduler) -> None:
    attempt = scheduler.pop()
    assert attempt is not None
    scheduler.decide(attempt)
    assert isinstance(attempt, GroupAttempt)
    assert isinstance(attempt.state, GroupDecided)
    assert attempt.state.status is None or attempt.state.waits_for_preemption, attempt.state.status


def _cpu_ms(work: Callable[[], object]) -> float:
    gc.collect()
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1000

"""What one tenant costs others: claims that come and go, pods that wait for nodes of their own, terms and sidecars."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace
from tests.adversary import HOSTILE_CLAIMS, TRAITS, WAITING, HostilePod, different_devices
from tests.device_builders import make_class, with_claims

from bench import clusters
from bench.hostile import Cluster
from bench.loop import Loop
from bench.measure import cpu_us
from kubesched.api.change import Change
from kubesched.api.pod import Container, Pod, ResourceRequirements
from kubesched.framework.budget import TURN, Budget
from kubesched.scheduler.attempt.attempt import Paused
from kubesched.scheduler.run_now import run_now
from kubesched.testing import make_pod

NODES, DEVICES, CLAIMS = 300, 128, 6
SIZE = 32
WAITING_PODS = {"terms": (1, 9000), "resources": (1, 10_000), "selector keys": (300, 300)}
"""How many pods wait, and how large each is; where nothing is said, 3,000 that ask for one thing each."""
_LIMIT = 1.0


class Claims(NamedTuple):
    """What claims of one sort cost that came and went, one after another."""

    kept_mb: float
    longest_turn: float
    seconds: float
    """CPU of all turns of one claim."""


def claims(sort: str) -> Claims:
    loop = Loop(NODES, budget=Budget(time.thread_time, turn=TURN, limit=_LIMIT))
    loop.scheduler.handle(Change(new=make_class()))
    for i, node in enumerate(loop.nodes):
        loop.scheduler.handle(Change(new=different_devices(node.name, DEVICES, first=i * DEVICES)))
    spent = [_turns(loop, sort, f"hostile-{i}") for i in range(CLAIMS)]
    return Claims(_kept_mb(loop, sort), max(map(max, spent)), max(map(sum, spent)))


def _turns(loop: Loop, sort: str, name: str) -> list[float]:
    """CPU seconds of each turn of an attempt. Then pod and claim are deleted."""
    claim, pod = HOSTILE_CLAIMS[sort](SIZE, name), with_claims(make_pod(name), name).build()
    for obj in (claim, pod):
        loop.scheduler.handle(Change(new=obj))
    attempt = loop.scheduler.pop()
    assert attempt is not None
    spent = [cpu_us(lambda: loop.scheduler.decide(attempt)) / 1e6]
    while isinstance(attempt.state, Paused):
        spent.append(cpu_us(lambda: loop.scheduler.decide(attempt)) / 1e6)
    run_now(loop.scheduler.finish(attempt))
    loop.binder.unseen.clear()
    for known in (loop.scheduler.pods[pod.key], claim):
        loop.scheduler.handle(Change(old=known))
    return spent


def _kept_mb(loop: Loop, sort: str) -> float:
    """What is held after more of them, beyond what was held after the first."""
    gc.collect()
    tracemalloc.start()
    for i in range(CLAIMS):
        _turns(loop, sort, f"another-{i}")
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    return held


def node_events() -> Iterator[tuple[str, float]]:
    """CPU milliseconds of an event of a node that helps none of the pods that wait, by what they wait for."""
    for sort, grow in WAITING.items():
        pods, size = WAITING_PODS.get(sort, (3000, 1))
        loop = Loop(nodes=20)
        for i in range(pods):
            loop.scheduler.handle(Change(new=grow(make_pod(f"waiting-{i}"), size).build()))
        loop.run(pods)
        spent = [_label_changes(loop, str(i)) for i in range(15)]
        assert len(loop.scheduler.queue.unschedulable()) == pods
        yield sort, statistics.median(spent)


def _label_changes(loop: Loop, value: str) -> float:
    old = loop.nodes[0]
    labels = {**old.metadata.labels, "generation": value}
    new = loop.nodes[0] = replace(old, metadata=replace(old.metadata, labels=labels))
    return cpu_us(lambda: loop.scheduler.handle(Change(old, new))) / 1000


def sidecars(containers: int = 1000, names: int = 20) -> float:
    """CPU seconds until a pod is decided that has so many, each with so many resources of its own."""
    made = tuple(
        Container(
            name=f"s{i}",
            restart_policy="Always",
            resources=ResourceRequirements(requests={f"example.com/s{i}-{j}": 1 for j in range(names)}),
        )
        for i in range(containers)
    )
    pod: Pod = clusters.pod(0, "hostile")
    return Cluster().decide(replace(pod, spec=replace(pod.spec, init_containers=made)))


def beside_terms(size: int = 5000) -> tuple[float, float]:
    """CPU milliseconds of an ordinary pod before and after one is placed with so many terms, for namespaces each."""
    trait = next(trait for trait in TRAITS if trait.name == "affinity across namespaces")
    cluster = Cluster()
    alone = cluster.ordinary()
    cluster.decide(HostilePod((trait,)).build(size, "hostile"))
    cluster.ordinary()
    return alone / 1000, cluster.ordinary() / 1000

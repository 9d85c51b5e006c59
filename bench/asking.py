"""Measuring questions about one large cluster: the explanation of a pod, and what would help it."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import clusters
from kubesched import config
from kubesched.api.pod import Pod
from kubesched.ask.explain import explain
from kubesched.simulate.cluster import ClusterModel

NODES, PODS = 5000, 50_000
KINDS = 50


def full_cluster() -> ClusterModel:
    """Every node filled to the last cpu."""
    nodes = [clusters.node(i) for i in range(NODES)]
    cpu = f"{32_000 * NODES // PODS}m"
    pods = [
        clusters.pod(i, f"filler-{i % KINDS}", cpu=cpu, node_name=f"node-{i % NODES:05d}", priority=i % 3)
        for i in range(PODS)
    ]
    return ClusterModel([*nodes, *pods], config.default())


ASKED: dict[str, Callable[[int], Pod]] = {
    "fits": lambda i: clusters.pod(i, "fits", cpu="0"),
    "too-big": lambda i: clusters.pod(i, "too-big", cpu="8"),
    "urgent": lambda i: clusters.pod(i, "urgent", cpu="8", priority=100),
    "some-zones": clusters.in_some_zones("some-zones"),
}


def cpu_ms(cluster: ClusterModel, kind: str, round_: int, *, with_remedies: bool) -> float:
    """CPU milliseconds of one answer about a pod of this kind, which was not asked about before."""
    pod = ASKED[kind](round_)
    start = time.process_time()
    answer = explain(cluster, pod, with_remedies=with_remedies)
    spent = (time.process_time() - start) * 1000
    assert bool(answer.explanation.node) == (kind == "fits")
    return spent

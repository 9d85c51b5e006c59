"""Clusters on which plans are measured: nodes of three sizes, sixty kinds of pods, filled as LeastAllocated does."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME
from kubesched.testing import PodBuilder, make_node, make_pod

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
SIZES = ((16, 64, 2), (32, 128, 2), (64, 256, 1))
"""Cpus, GiB of memory, and how many of five nodes are of this size."""
PRICES = {"c16": 0.8, "c32": 1.55, "c64": 3.0}
KINDS = 60
SMALL, BIG = 1.2, 4.5
"""Cpus of the median kind."""


@dataclass(frozen=True)
class _Kind:
    cpu: int
    """In thousandths."""
    memory: int
    """In MiB."""
    alone: bool
    """At most one on a node."""
    size: str
    """The only type of nodes; empty for all."""
    stays: bool

    def pod(self, name: str, kind: int, node: str) -> Pod:
        made: PodBuilder = make_pod(name, uid=f"uid/{name}").label(app=f"app-{kind}").on(node)
        made = made.owned_by("ReplicaSet", f"app-{kind}").requests(cpu=f"{self.cpu}m", memory=f"{self.memory}Mi")
        if self.alone:
            made = made.pod_anti_affinity(HOSTNAME, app=f"app-{kind}")
        if self.size:
            made = made.node_selector({INSTANCE_TYPE: self.size})
        if self.stays:
            made = made.annotate({"karpenter.sh/do-not-disrupt": "true"})
        return made.build()


def sixty_kinds(nodes: int, *, median: float, used: float = 0.6, seed: int = 1) -> list[KubeObject]:
    """So many nodes, filled to a share of their cpus, always on the node with most left."""
    rng = random.Random(seed)
    made = [_node(i, *SIZES[_size(i)][:2]) for i in range(nodes)]
    kinds = [_kind(rng, i, median) for i in range(KINDS)]
    left = np.array([[SIZES[_size(i)][0] * 1000, SIZES[_size(i)][1] * 1024] for i in range(nodes)])
    whole, types = left.copy(), np.array([f"c{SIZES[_size(i)][0]}" for i in range(nodes)])
    has = np.zeros((KINDS, nodes), dtype=bool)
    pods: list[Pod] = []
    wanted = (1 - used) * whole[:, 0].sum()
    while left[:, 0].sum() > wanted:
        k = rng.randrange(KINDS)
        kind = kinds[k]
        fits = (left >= (kind.cpu, kind.memory)).all(axis=1)
        if kind.alone:
            fits &= ~has[k]
        if kind.size:
            fits &= types == kind.size
        if not fits.any():
            continue
        i = int(np.where(fits, (left / whole).mean(axis=1), -1).argmax())
        left[i] -= (kind.cpu, kind.memory)
        has[k, i] = True
        stays = kind.stays or rng.random() < 0.03
        pods.append(_Kind(kind.cpu, kind.memory, kind.alone, kind.size, stays).pod(f"p{len(pods)}", k, made[i].name))
    return [*made, *pods]


def _size(i: int) -> int:
    return (0, 0, 1, 1, 2)[i % 5]


def _node(i: int, cpus: int, memory: int) -> Node:
    name = f"node-{i:05d}"
    node = make_node(name).capacity(cpu=str(cpus), memory=f"{memory}Gi", pods=110).label({INSTANCE_TYPE: f"c{cpus}"})
    return node.build()


def _kind(rng: random.Random, i: int, median: float) -> _Kind:
    cpu = min(14.0, median * rng.lognormvariate(0, 0.7))
    memory = cpu * 1024 * rng.choice((2, 3, 4, 5))
    size = rng.choice(("c16", "c32", "c64")) if i % 10 == 3 else ""
    return _Kind(max(100, round(cpu * 10) * 100), round(memory), i % 5 == 0, size, stays=False)

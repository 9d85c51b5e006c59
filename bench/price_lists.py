"""Forty-two types of nodes in the proportions of on-demand prices, and pods of fifty kinds to buy them for."""

from __future__ import annotations

import random

from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.prices import InstanceType, PriceList
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.testing import make_pod

_FAMILIES = {"c": (2, 42.5), "m": (4, 48.0), "r": (8, 63.0), "ca": (2, 38.3), "ma": (4, 43.2), "ra": (8, 56.7)}
"""GiB of memory and price, in thousandths, for each cpu."""
_SIZES = (2, 4, 8, 16, 32, 48)
_FAMILIES["mi"] = (4, 50.4)


def forty_two_types() -> PriceList:
    """Seven families of six sizes, without what the kubelet keeps for itself."""
    types = []
    for family, (ratio, price) in _FAMILIES.items():
        for cpus in _SIZES:
            kept_cpu, kept_memory = round(80 + max(0, cpus - 4) * 2.5) + 200, 655 + 11 * min(110, 8 * cpus)
            amounts = {
                "cpu": f"{cpus * 1000 - kept_cpu}m",
                "memory": f"{cpus * ratio * 1024 - kept_memory}Mi",
                "pods": "107",
            }
            name = f"{family}7.{cpus}x"
            types.append(InstanceType(name, amounts, round(price * cpus / 1000, 4), {INSTANCE_TYPE: name}))
    return PriceList(tuple(types))


def fifty_kinds(count: int, seed: int = 1) -> list[Pod]:
    """So many pods; those of a fifth of the kinds go on nodes of their own."""
    rng = random.Random(seed)
    weights = [rng.expovariate(1) for _ in range(50)]
    numbers = rng.choices(range(50), weights, k=count)
    kinds = [_kind(rng, i) for i in range(50)]
    pods, alone = [], dict[int, int]()
    for i, number in enumerate(numbers):
        cpu, memory, is_alone = kinds[number]
        if is_alone and alone.setdefault(number, 0) >= 30:
            number = (number + 1) % 50
            cpu, memory, is_alone = kinds[number][0], kinds[number][1], False
        alone[number] = alone.get(number, 0) + is_alone
        pod = make_pod(f"p{i:05d}", uid=f"uid/{i}").requests(cpu=f"{cpu}m", memory=f"{memory}Mi")
        if is_alone:
            pod = pod.label(app=f"k{number}").pod_anti_affinity(HOSTNAME, app=f"k{number}")
        pods.append(pod.build())
    return pods


def _kind(rng: random.Random, i: int) -> tuple[int, int, bool]:
    cpu = min(14_000, max(50, int(rng.lognormvariate(0, 0.9) * 800) // 50 * 50))
    return cpu, min(100_000, int(cpu * rng.choice((1, 2, 3, 4, 6, 8)) * 1.024)), i % 5 == 0

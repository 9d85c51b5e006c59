"""The openb traces as a cluster and a queue, read from a folder that is named: every share of a GPU is a whole one.

The folder has `nodes.csv.gz` and `pods/TRACE.csv.gz`, as in hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Iterator
from pathlib import Path

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.testing import make_node, make_pod, node_term

GPU = "nvidia.com/gpu"
MODEL = "gpu-model"
MOST_PODS = 1001
"""On one node."""


def traces(folder: Path) -> list[str]:
    """The names of the traces in a folder."""
    return sorted(path.name.removesuffix(".csv.gz") for path in (folder / "pods").glob("*.csv.gz"))


def nodes(folder: Path) -> list[Node]:
    """All nodes that have GPUs."""
    return [_node(row) for row in _rows(folder / "nodes.csv.gz") if int(row["gpu"])]


def gpus(folder: Path) -> int:
    """How many there are on all nodes."""
    return sum(int(row["gpu"]) for row in _rows(folder / "nodes.csv.gz"))


def queue(folder: Path, trace: str, percent: int, seed: int = 1) -> list[Pod]:
    """The pods of a trace in a random order, and more of them drawn, until the next would ask for more GPUs than that.

    `percent` is of all GPUs there are.
    """
    rng = random.Random(seed)
    known = list(_rows(folder / "pods" / f"{trace}.csv.gz"))
    rng.shuffle(known)
    left, arrived = gpus(folder) * percent // 100, list[Pod]()
    for row in _for_ever(known, rng):
        left -= int(row["num_gpu"])
        if left < 0:
            return arrived
        arrived.append(_pod(f"pod-{len(arrived):05d}", row))
    raise AssertionError("pods never end")


def _for_ever(known: list[dict[str, str]], rng: random.Random) -> Iterator[dict[str, str]]:
    yield from known
    while True:
        yield rng.choice(known)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _node(row: dict[str, str]) -> Node:
    node = make_node(row["sn"]).capacity({"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"})
    return node.capacity({GPU: row["gpu"], "pods": MOST_PODS}).label({MODEL: row["model"]}).build()


def _pod(name: str, row: dict[str, str]) -> Pod:
    requests = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    if int(row["num_gpu"]):
        requests[GPU] = row["num_gpu"]
    pod = make_pod(name, uid=f"uid/{name}").requests(requests)
    models = row.get("gpu_spec")
    return (pod.requires_node(node_term(MODEL, "In", *models.split("|"))) if models else pod).build()

"""Set covers of pods by loads of nodes: what a cover costs, and best fit for pods that it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.api.pod import Pod
from kubesched.planning.kinds import PodKind, Problem
from kubesched.state.columns import Bool, Float, Int64, Rows


@dataclass(frozen=True, eq=False)
class Cover:
    """Kinds of pods with a penalty for each pod that is left out, and classes of nodes with a price for each."""

    requests: Int64
    """By kind and resource."""
    demand: Int64
    penalty: Float
    room: Int64
    """Of one node, by class and resource."""
    nodes: Float
    """How many there are of each class, or may be."""
    price: Float
    most: Int64
    """How many pods of a kind alone one node of a class takes, by kind and class."""
    one_per_node: Bool
    """Whether no two pods of a kind go on one node."""

    @classmethod
    def of_queue(cls, problem: Problem, values: Float, demand: Int64 | None = None) -> Cover:
        """Nodes that are there cost nothing; a pod that is left out costs its value.

        `demand` takes the place of all pods of each kind.
        """
        price = np.zeros(len(problem.classes))
        nodes = problem.nodes.astype(np.float64)
        alone = np.array([kind.conflict is not None for kind in problem.kinds], dtype=np.bool_)
        demand = problem.demand if demand is None else demand
        return cls(problem.requests, demand, values, problem.free, nodes, price, problem.most, alone)


@dataclass(frozen=True, eq=False)
class NodeLoad:
    """What goes on one node of a class."""

    node_class: int
    counts: Int64
    """By kind."""


@dataclass(frozen=True, eq=False)
class Covered:
    """A way to place pods."""

    loads: tuple[NodeLoad, ...]
    unplaced: Int64
    """How many pods of each kind are left out."""
    cost: float
    """Prices and penalties."""

    @property
    def placed(self) -> Int64:
        """How many pods of each kind the loads have."""
        return sum((load.counts for load in self.loads), start=np.zeros_like(self.unplaced))


class Bins:
    """Nodes with the room that is left on each, and how many pods of each kind they have."""

    def __init__(self, requests: Int64, most_per_node: Int64, fits: Bool) -> None:
        """`fits` by kind and class; `most_per_node` by kind, leaving room aside."""
        self._requests = requests
        self._most = most_per_node
        self._fits = fits
        self.class_of: Rows = np.zeros(0, dtype=np.intp)
        self.room: Int64 = np.zeros((0, requests.shape[1]), dtype=np.int64)
        self.counts: Int64 = np.zeros((0, len(requests)), dtype=np.int64)

    def add(self, class_of: Rows, room: Int64, counts: Int64) -> None:
        """Nodes with their class, their whole room and what is on them already."""
        self.class_of = np.concatenate([self.class_of, class_of])
        self.room = np.concatenate([self.room, room - counts @ self._requests])
        self.counts = np.concatenate([self.counts, counts])

    def fill(self, kind: int, count: int, weights: Float, among: Bool | None = None) -> int:
        """Put so many pods of a kind where they leave least, by the weights of resources; how many found no room."""
        if count <= 0 or not len(self.room):
            return count
        request = self._requests[kind]
        requested = request > 0
        most = (self.room[:, requested] // request[requested]).min(axis=1, initial=count)
        most = np.minimum(most, self._most[kind] - self.counts[:, kind])
        most[~self._fits[kind, self.class_of]] = 0
        if among is not None:
            most[~among] = 0
        open_bins = np.flatnonzero(most > 0)
        if not len(open_bins):
            return count
        tightest = open_bins[np.argsort(self.room[open_bins] @ weights, kind="stable")]
        taken = np.minimum(most[tightest], np.maximum(count - (np.cumsum(most[tightest]) - most[tightest]), 0))
        self.room[tightest] -= taken[:, None] * request
        self.counts[tightest, kind] += taken
        return count - int(taken.sum())


def pods_of(covered: Covered, kinds: Sequence[PodKind]) -> Iterator[list[tuple[int, Pod]]]:
    """By load: its pods, each with its kind. Of a kind, the first pods are those that have a load."""
    pods = [iter(kind.pods) for kind in kinds]
    for load in covered.loads:
        yield [(k, next(pods[k])) for k in np.repeat(np.arange(len(kinds)), load.counts).tolist()]


def cost_of(cover: Cover, loads: Iterable[NodeLoad], unplaced: Int64) -> float:
    """Prices of nodes and penalties of pods that are left out."""
    return float(sum(cover.price[load.node_class] for load in loads) + unplaced @ cover.penalty)


def bins_of(cover: Cover, loads: Sequence[NodeLoad] = ()) -> Bins:
    """Nodes with these loads, and all others empty. Only where nodes are limited."""
    kinds = len(cover.demand)
    bins = Bins(cover.requests, np.where(cover.one_per_node, 1, cover.demand), cover.most > 0)
    class_of = np.array([load.node_class for load in loads], dtype=np.intp)
    counts = np.array([load.counts for load in loads], dtype=np.int64).reshape(-1, kinds)
    bins.add(class_of, cover.room[class_of], counts)
    unused = (cover.nodes - np.bincount(class_of, minlength=len(cover.nodes))).astype(np.int64)
    empty = np.repeat(np.arange(len(unused)), unused)
    bins.add(empty, cover.room[empty], np.zeros((len(empty), kinds), dtype=np.int64))
    return bins


def covered_by(cover: Cover, bins: Bins) -> Covered:
    """What the bins hold."""
    used = np.flatnonzero(bins.counts.any(axis=1)).tolist()
    loads = tuple(NodeLoad(int(bins.class_of[i]), bins.counts[i].copy()) for i in used)
    unplaced = cover.demand - bins.counts.sum(axis=0)
    return Covered(loads, unplaced, cost_of(cover, loads, unplaced))


def fill_cover(cover: Cover, loads: Sequence[NodeLoad], weights: Float) -> Covered:
    """The loads with what they lack of the demand wherever it still fits, those of the greatest penalty first."""
    bins = bins_of(cover, loads)
    lacking = cover.demand - bins.counts.sum(axis=0)
    for k in np.argsort(-cover.penalty, kind="stable").tolist():
        bins.fill(k, int(lacking[k]), weights)
    return covered_by(cover, bins)

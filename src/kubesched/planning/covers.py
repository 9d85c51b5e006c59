"""Pods that are to be covered by loads of nodes, and ways to do so: what each costs, and what best fit adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.planning.bins import Bins
from kubesched.planning.kinds import Problem
from kubesched.state.columns import Bool, Float, Int64


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
        wanted = problem.demand if demand is None else demand
        return cls(problem.requests, wanted, values, problem.free, nodes, price, problem.most, alone)


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
    left: Int64
    """How many pods of each kind are left out."""
    cost: float
    """Prices and penalties."""

    @property
    def placed(self) -> Int64:
        """How many pods of each kind the loads have."""
        return sum((load.counts for load in self.loads), start=np.zeros_like(self.left))


def cost_of(cover: Cover, loads: Iterable[NodeLoad], left: Int64) -> float:
    """Prices of nodes and penalties of pods that are left out."""
    return float(sum(cover.price[load.node_class] for load in loads) + left @ cover.penalty)


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
    left = cover.demand - bins.counts.sum(axis=0)
    return Covered(loads, left, cost_of(cover, loads, left))


def filled(cover: Cover, loads: Sequence[NodeLoad], weights: Float) -> Covered:
    """The loads with what they lack of the demand wherever it still fits, those of the greatest penalty first."""
    bins = bins_of(cover, loads)
    lacking = cover.demand - bins.counts.sum(axis=0)
    for k in np.argsort(-cover.penalty, kind="stable").tolist():
        bins.fill(k, int(lacking[k]), weights)
    return covered_by(cover, bins)

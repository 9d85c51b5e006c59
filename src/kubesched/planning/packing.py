"""The movable pods of a cluster as arrays: how many of each kind are on each node, and the room that there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.planning.kinds import KindReader, PodKind, free_of, most_of, requests_of, resources_of, without_node
from kubesched.planning.movable import Movable
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Bool, Float, Int64


class Packing:
    """Pods by kind and row, kept in step with the moves that are decided on."""

    def __init__(self, cluster: ClusterModel, movable: Movable, *, more: Sequence[Pod] = ()) -> None:
        """`more` are pending pods that are to be placed, too."""
        nodes = cluster.state.nodes
        self.live: Bool = nodes.live[: nodes.size].copy()
        pods = [*chain.from_iterable(movable.pods.values()), *more]
        self.kinds: tuple[PodKind, ...] = KindReader(cluster).kinds_of(map(without_node, pods))
        self.resources = resources_of(self.kinds)
        self.requests = requests_of(self.kinds, self.resources)
        """By kind and resource."""
        self.fits: Bool = np.array([kind.fits for kind in self.kinds], dtype=np.bool_).reshape(-1, nodes.size)
        """By kind and row."""
        self.per_node = np.array([kind.most_per_node for kind in self.kinds], dtype=np.int64)
        self.free = free_of(cluster, self.resources)
        """By row and resource, what is left beside all pods."""
        self.whole = np.maximum(free_of(cluster, self.resources, cluster.pods.values()), 1)
        """By row and resource, what there would be on an empty node."""
        self.counts = np.zeros((len(self.kinds), nodes.size), dtype=np.int64)
        """By kind and row."""
        self.kind_of: dict[str, int] = {}
        """By uid."""
        for k, kind in enumerate(self.kinds):
            self.kind_of |= dict.fromkeys((pod.uid for pod in kind.pods), k)
        for pod in pods:
            if pod.spec.node_name:
                self.counts[self.kind_of[pod.uid], nodes.row_of[pod.spec.node_name]] += 1
        self.candidates = np.zeros(nodes.size, dtype=np.bool_)
        """Rows whose nodes can be emptied."""
        for node in cluster.all(Node):
            row = nodes.row_of[node.name]
            self.candidates[row] = self.live[row] and not movable.keeps(node)

    @cached_property
    def scale(self) -> Float:
        """By resource: how much of it a node has on average, to make resources comparable."""
        mean: Float = self.whole[self.live].mean(axis=0)
        return np.maximum(mean, 1.0)

    @property
    def room(self) -> Int64:
        """By row and resource, what is left beside pods that stay."""
        moving: Int64 = self.counts.T @ self.requests
        return self.free + moving

    @property
    def moves(self) -> Int64:
        """By row: how many pods have to move to empty it."""
        moves: Int64 = self.counts.sum(axis=0)
        return moves

    def fitting(self) -> Int64:
        """By kind and row: how many more of the kind alone a node takes now."""
        room = np.minimum(most_of(self.requests, self.free), np.maximum(self.per_node[:, None] - self.counts, 0))
        return np.where(self.fits, room, 0)

    def taking(self) -> Int64:
        """By kind and row: how many of the kind alone a node takes without the pods that may move."""
        return np.where(self.fits, np.minimum(most_of(self.requests, self.room), self.per_node[:, None]), 0)

    def move(self, kind: int, from_row: int, to_row: int) -> None:
        """A pod of the kind moves; from or to a row below 0 is from or to nowhere."""
        for row, sign in ((from_row, -1), (to_row, 1)):
            if row >= 0:
                self.counts[kind, row] += sign
                self.free[row] -= sign * self.requests[kind]

    def tightest(self, kind: int, rows: Bool) -> int:
        """Of these rows, the one on which a pod of the kind leaves least behind."""
        which = np.flatnonzero(rows)
        slack = (self.free[which] - self.requests[kind]) / self.scale
        return int(which[slack.sum(axis=1).argmin()])

    def by_size(self, pods: Iterable[Pod]) -> list[Pod]:
        """The largest first."""
        sizes = (self.requests / self.scale).max(axis=1)
        return sorted(pods, key=lambda pod: -sizes[self.kind_of[pod.uid]])

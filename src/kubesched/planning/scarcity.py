"""What is scarce, in words: shadow prices by resource and kind of node, and why pods are left waiting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubesched.api.requests import amount_text
from kubesched.ask.output import counted, listed
from kubesched.planning.bounds import UpperBound
from kubesched.planning.kinds import Problem
from kubesched.planning.plan import ShadowPrice
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE, pool_of
from kubesched.state.columns import Int64

SMALLEST_SHARE = 0.005
"""Smaller shares are not told."""


def scarce_of(cluster: ClusterModel, problem: Problem, bound: UpperBound) -> tuple[ShadowPrice, ...]:
    """Which room the bound depends on, and how much of it; what waiting pods themselves limit is the rest."""
    shares: dict[str, float] = {}
    names = [resource_name(name) for name in problem.resources]
    by_pool = bound.shares()
    several = len(by_pool) > 1
    for p, r in zip(*np.nonzero(by_pool >= SMALLEST_SHARE / 10)):
        where = f" on {_nodes_of(cluster, problem, np.flatnonzero(bound.pools.of_class == p))}" if several else ""
        what = f"{names[r]}{where}"
        shares[what] = shares.get(what, 0.0) + float(by_pool[p, r])
    prices = [ShadowPrice(what, round(min(share, 1.0), 4)) for what, share in shares.items() if share >= SMALLEST_SHARE]
    return tuple(sorted(prices, key=lambda price: (-price.share, price.what)))


def resource_name(resource: str) -> str:
    """`nvidia.com/gpu` is what manifests say; nothing shorter is unmistakable."""
    return "room for pods" if resource == "pods" else resource


def _nodes_of(cluster: ClusterModel, problem: Problem, classes: Iterable[int]) -> str:
    """The nodes of some classes, by the types or pools that they are of."""
    nodes = cluster.state.nodes
    rows = [int(row) for c in classes for row in problem.classes[c].rows]
    types = {nodes.node(row).metadata.labels.get(INSTANCE_TYPE, "") for row in rows}
    pools = {pool_of(nodes.node(row)) for row in rows}
    for names in (types, pools):
        if "" not in names and len(names) <= 2:
            return " and ".join(sorted(names))
    return f"{nodes.names[rows[0]]} and {counted(len(rows) - 1, 'other')}" if len(rows) > 1 else nodes.names[rows[0]]


def why_waiting(problem: Problem, bound: UpperBound, waiting: Int64) -> list[str]:
    """Why pods of each kind wait, those that wait most first: proven where no node could take them at all."""
    reasons: dict[str, int] = {}
    for k in np.flatnonzero(waiting).tolist():
        reason = _impossible(problem, k) or _crowded_out(problem, bound, k)
        reasons[reason] = reasons.get(reason, 0) + int(waiting[k])
    ranked = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    return [f"{counted(number, 'pod')}: {why}" for why, number in ranked]


def _impossible(problem: Problem, k: int) -> str:
    """Why no node takes a pod of this kind, whatever else is there; empty if one does."""
    if problem.most[k].any():
        return ""
    allowed = [c for c, node_class in enumerate(problem.classes) if node_class.fits[k]]
    if not allowed:
        return "no node passes the filters that look at nodes: selectors, affinity, taints, volumes"
    short = lacking(problem.resources, problem.requests[k], problem.free[allowed])
    return f"no node where it may go has {listed(short, 3)} left"


def lacking(resources: Sequence[str], request: Int64, rooms: Int64) -> list[str]:
    """What none of the rooms has enough of; if each is enough somewhere, all that is asked for together."""
    most = rooms.max(axis=0, initial=0)
    short = [i for i in range(len(request)) if request[i] > most[i]]
    lacking_resources = short or [i for i in range(len(request) - 1) if request[i]]
    texts = [f"{amount_text(resources[i], int(request[i]))} {resource_name(resources[i])}" for i in lacking_resources]
    return texts if short else [" with ".join(texts)]


def _crowded_out(problem: Problem, bound: UpperBound, k: int) -> str:
    """The resource whose room is worth most to others, of those that the kind asks for where it may go."""
    pools = sorted({int(bound.pools.of_class[c]) for c in np.flatnonzero(problem.most[k])})
    costs = bound.prices[pools] * problem.requests[k]
    if costs.sum() <= 0:
        return "no room was found, though none is proven to be lacking"
    resource = int(costs.sum(axis=0).argmax())
    return f"{resource_name(problem.resources[resource])} goes to pods of a higher priority or value"

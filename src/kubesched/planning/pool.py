"""`plan pool`: the cheapest nodes to buy on which all the pods run, beside the room that there is.

Types of nodes are classes of which there is any number, at a price; nodes that exist cost nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.ask.output import counted
from kubesched.planning.checking import Draft, check_plan
from kubesched.planning.columns import ColumnSearch
from kubesched.planning.covers import Bins, Cover, Covered, covered_by, pods_of
from kubesched.planning.drain import COUPLING, WHOLE_NODES
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.kinds import KindReader, NodeClass, Problem, classes_of, free_of, resources_of
from kubesched.planning.movable import Movable
from kubesched.planning.offers import NodeOffers
from kubesched.planning.oracle import Oracle
from kubesched.planning.plan import NodeFate, Plan, PlanBound, PlannedNode, PlanOutcome, ShadowPrice
from kubesched.planning.prices import InstanceType, PriceList
from kubesched.planning.scarcity import SMALLEST_SHARE, lacking, resource_name
from kubesched.planning.solver import INF
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Float

RELAXED = (COUPLING, WHOLE_NODES)
PROOF = "bound of Farley: prices of pods at which no load of any node is worth more than the node"
UNIT = "per hour"
_MOST_EXISTING = 100
"""With more classes of existing nodes than this, pods go to new nodes only."""
_NEAR = 0.005
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Market:
    """What can be bought, what there is already, and the pods that need it, as arrays."""

    offers: NodeOffers
    existing: Problem
    """The pods and the nodes that there are."""
    cover: Cover
    """The types first, in their order, then the classes of nodes that exist."""
    only_new: bool
    """Whether nodes that exist are left as they are."""


def market_of(cluster: ClusterModel, pods: Sequence[Pod], types: Sequence[InstanceType]) -> Market:
    """The engine's filters say which pods go on which types: one node of each is added for a while."""
    offers = NodeOffers.to(cluster, types)
    with Oracle(cluster) as oracle:
        rows = oracle.add_objects(obj for t in range(len(types)) for obj in offers.objects(t, f"offer/{t}"))
        kinds = KindReader(cluster).kinds_of(pods)
        resources = resources_of(kinds)
        free = free_of(cluster, resources)
        old = cluster.state.nodes.live[: len(free)].copy()
        old[rows] = False
        existing = Problem(resources, kinds, classes_of(kinds, free, old))
        only_new = len(existing.classes) > _MOST_EXISTING
        if only_new:
            existing = Problem(resources, kinds, ())
        offered = [NodeClass(np.array([row]), free[row], np.array([kind.fits[row] for kind in kinds])) for row in rows]
    return Market(offers, existing, _cover(existing, types, offered), only_new)


def _cover(existing: Problem, types: Sequence[InstanceType], offered: Sequence[NodeClass]) -> Cover:
    """`offered` are the types as classes of nodes."""
    problem = Problem(existing.resources, existing.kinds, (*offered, *existing.classes))
    price = np.array([type_.price for type_ in types] + [0.0] * len(existing.classes))
    limits = [INF if type_.most is None else float(type_.most) for type_ in types]
    cheapest = np.where(problem.most[:, : len(types)] > 0, price[: len(types)], INF).min(axis=1, initial=INF)
    is_limited = any(type_.most is not None for type_ in types)
    penalty = np.where(np.isfinite(cheapest), cheapest, 0.0) * (10.0 if is_limited else 1.0) + 1e-6
    return replace(Cover.of_queue(problem, penalty), nodes=np.concatenate([limits, existing.nodes]), price=price)


def first_fit_decreasing(market: Market, t: int) -> Bins | None:
    """The pods on nodes of one type alone, the largest first; None if some pods cannot go there, or it has too few."""
    cover, demand = market.cover, market.cover.demand
    if (cover.most[demand > 0, t] == 0).any():
        return None
    bins = Bins(cover.requests, np.where(cover.one_per_node, 1, demand), cover.most > 0)
    weights: Float = 1.0 / np.maximum(cover.room[t], 1)
    for k in np.argsort(-(cover.requests * weights).max(axis=1), kind="stable").tolist():
        unplaced = bins.fill(k, int(demand[k]), weights)
        while unplaced > 0:
            more = -(-unplaced // int(cover.most[k, t]))
            rooms = np.repeat(cover.room[t][None, :], more, axis=0)
            bins.add(np.full(more, t), rooms, np.zeros((more, len(demand)), dtype=np.int64))
            unplaced = bins.fill(k, unplaced, weights)
    return bins if len(bins.room) <= cover.nodes[t] else None


def cheapest(market: Market, search: PlanSearch) -> tuple[Covered, PlanBound, tuple[float, str] | None]:
    """The cheapest cover found, what none can cost less than, and the cost of the best single type with its name."""

    def report(cost: float, bound: float) -> None:
        search.tell(f"{cost:,.3f} {UNIT}, at least {max(bound, 0):,.3f}")

    columns = ColumnSearch(market.cover, search.goes_on, report)
    singles: list[tuple[float, str]] = []
    for t, instance_type in enumerate(market.offers.types):
        bins = first_fit_decreasing(market, t)
        if bins is not None:
            columns.add((t, counts.copy()) for counts in bins.counts)
            columns.keep(covered_by(market.cover, bins))
            singles.append((len(bins.room) * instance_type.price, instance_type.name))
    columns.generate(_ROUNDS, gain=1e-4)
    columns.dive(by_worth=True, rounds=2)
    for by_worth, rounds in ((False, 2), (True, 6), (False, 6)):
        assert columns.best is not None
        if columns.best.cost <= columns.bound * (1 + _NEAR) or not search.goes_on():
            break
        columns.dive(by_worth=by_worth, rounds=rounds)
    assert columns.best is not None
    bound = PlanBound(max(columns.bound, 0.0), UNIT, RELAXED, PROOF, _scarce(market, columns))
    return columns.best, bound, min(singles, default=None)


def _scarce(market: Market, columns: ColumnSearch) -> tuple[ShadowPrice, ...]:
    """Which room of the nodes that are bought pays for them, at the prices that prove the bound."""
    assert columns.best is not None
    worth, types = Counter[str](), market.offers.types
    for c, number in Counter(load.node_class for load in columns.best.loads).items():
        if c < len(types):
            for resource, value in zip(market.existing.resources, columns.room_worth(c)):
                worth[f"{resource_name(resource)} on {types[c].name}"] += number * value
    total = max(sum(worth.values()), 1e-12)
    shares = [ShadowPrice(what, round(value / total, 4)) for what, value in worth.most_common()]
    return tuple(price for price in shares if price.share >= SMALLEST_SHARE)


def plan_pool(cluster: ClusterModel, pods: Sequence[Pod], prices: PriceList, search: PlanSearch) -> Plan:
    """The cheapest nodes found for these pods, each placement decided by the engine. Raises PlanError."""
    ours = [pod for pod in pods if cluster.engine.knows(pod.spec.scheduler_name) and not pod.spec.node_name]
    plan = Plan("the cheapest nodes for the pods that wait", PlanOutcome.UNCHANGED)
    if not ours:
        return replace(plan, reason="no pod waits for a node")
    market = market_of(cluster, ours, prices.types)
    if hopeless := _hopeless(market):
        return replace(plan, outcome=PlanOutcome.IMPOSSIBLE, reason="; ".join(hopeless))
    covered, bound, single = cheapest(market, search)
    buying = _Buying(cluster, market)
    buying.carry_out(covered)
    if market.only_new:
        plan = replace(plan, goal=f"{plan.goal}, none of which go to nodes that exist")
    by_key = {pod.key: pod for pod in ours}
    placements = [(by_key[key], node) for key, node in buying.placed.items()]
    draft = Draft([], list(buying.nodes()), placements, buying.new(), buying.asked, buying.refused)
    plan = check_plan(cluster, Movable(cluster), replace(plan, bound=bound), draft, search)
    cost = sum((node.price or 0.0) * node.count for node in plan.nodes)
    placed = {placement.pod for placement in plan.placements}
    waiting = tuple(pod.key for pod in ours if pod.key not in placed)
    reason = [f"first fit decreasing into {single[1]} alone costs {single[0]:,.3f}"] if single is not None else []
    if search.was_cut:
        reason.insert(0, "the search was interrupted")
    if waiting:
        reason.insert(0, f"{counted(len(waiting), 'pod')} found no place: what can be bought is limited")
    return replace(
        plan,
        outcome=PlanOutcome.PARTIAL if waiting else PlanOutcome.FOUND,
        reason="; ".join(reason),
        waiting=waiting,
        value=cost,
        cost_before=0.0,
        cost_after=cost,
    )


def _hopeless(market: Market) -> list[str]:
    """Why pods go on no node that can be bought or is there, by kind."""
    cover, types = market.cover, len(market.offers.types)
    lines = []
    for k, kind in enumerate(market.existing.kinds):
        if cover.most[k].any():
            continue
        short = lacking(market.existing.resources, cover.requests[k], cover.room[:types])
        name = kind.pods[0].key + (f" and {counted(len(kind.pods) - 1, 'other')}" if len(kind.pods) > 1 else "")
        lines.append(f"{name}: no type of node that it may go to has {' and '.join(short)}")
    return lines


class _Buying:
    """The nodes of a cover, bought one after another, with pods on them as the engine agrees."""

    def __init__(self, cluster: ClusterModel, market: Market) -> None:
        self._cluster = cluster
        self._market = market
        self.bought: dict[str, int] = {}
        """The type of each node by its name."""
        self.placed: dict[str, str] = {}
        self.asked, self.refused = 0, 0

    def carry_out(self, covered: Covered) -> None:
        market, types, kinds = self._market, len(self._market.offers.types), self._market.existing.kinds
        existing = [iter(node_class.rows.tolist()) for node_class in market.existing.classes]
        refused: list[tuple[int, Pod]] = []
        with Oracle(self._cluster) as oracle:
            for load, pods in zip(covered.loads, pods_of(covered, kinds)):
                is_new = load.node_class < types
                row = self._buy(oracle, load.node_class) if is_new else next(existing[load.node_class - types])
                for k, pod in pods:
                    if oracle.place(pod, row):
                        self.placed[pod.key] = oracle.name(row)
                    else:
                        refused.append((k, pod))
            placed = covered.placed
            without_load = [(k, pod) for k, kind in enumerate(kinds) for pod in kind.pods[placed[k] :]]
            for k, pod in (*refused, *without_load):
                rows = oracle.only(map(oracle.row, self.bought)) if market.only_new else None
                place = oracle.place_anywhere(pod, rows)
                if place is None:
                    self._alone(oracle, k, pod)
                else:
                    self.placed[pod.key] = oracle.name(place)
            self.asked, self.refused = oracle.asked, oracle.refused
        used = set(self.placed.values())
        self.bought = {name: t for name, t in self.bought.items() if name in used}

    def _alone(self, oracle: Oracle, k: int, pod: Pod) -> None:
        """A node of its own, the cheapest that the engine accepts, for a pod that it refuses everywhere else."""
        cover, types = self._market.cover, len(self._market.offers.types)
        for t in sorted(np.flatnonzero(cover.most[k, :types]).tolist(), key=lambda t: (cover.price[t], t)):
            if sum(bought == t for bought in self.bought.values()) >= cover.nodes[t]:
                continue
            with oracle.trying() as keep:
                row = self._buy(oracle, t)
                if oracle.place(pod, row):
                    self.placed[pod.key] = oracle.name(row)
                    keep()
                    return
                del self.bought[oracle.name(row)]

    def _buy(self, oracle: Oracle, t: int) -> int:
        name = self._market.offers.new_name(t, self._cluster.state.nodes.row_of)
        self.bought[name] = t
        return oracle.add_objects(self._market.offers.objects(t, name))[0]

    def new(self) -> tuple[KubeObject, ...]:
        """The nodes that are bought, and their daemons."""
        return tuple(obj for name, t in self.bought.items() for obj in self._market.offers.objects(t, name))

    def nodes(self) -> Iterable[PlannedNode]:
        """How many nodes of each type are bought."""
        types = self._market.offers.types
        counts = [(types[t], number) for t, number in Counter(self.bought.values()).items()]
        for type_, number in sorted(counts, key=lambda count: -count[1] * count[0].price):
            yield PlannedNode(type_.name, NodeFate.ADDED, type_.name, type_.price, number)

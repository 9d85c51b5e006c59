"""A question for a plan, the same for the command, the library and agents: its goal, its limits, the plan it gets."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from kubesched.api.selectors import read_selector
from kubesched.ask.targets import QuestionRequest, pending_of
from kubesched.planning.consolidate import ConsolidateGoal, plan_consolidate
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.fit import plan_fit
from kubesched.planning.free import FreeGoal, plan_free
from kubesched.planning.movable import CRITICAL, MovingRules
from kubesched.planning.plan import Plan
from kubesched.planning.pool import plan_pool
from kubesched.planning.prices import PriceList, price_list
from kubesched.planning.queue import plan_queue
from kubesched.planning.solver import require
from kubesched.simulate.cluster import ClusterModel

MOST_EFFORT = 1_000


class PlanKind(StrEnum):
    """What is to be reached."""

    FREE = "free"
    """Empty nodes with the fewest moves."""
    FIT = "fit"
    """Find nodes for pending pods with the fewest moves."""
    CONSOLIDATE = "consolidate"
    """Let nodes go, so that the others cost less."""
    POOL = "pool"
    """Buy the cheapest nodes for the pending pods."""
    QUEUE = "queue"
    """Say who of the pending pods runs, and where."""


class PlanQuestion(QuestionRequest, frozen=True, kw_only=True):
    """Which pods to move, or which nodes to buy, and how far from the best possible is that? `goal` is free (empty
    `nodes` nodes), fit (room for pending pods), consolidate (save money), pool (cheapest nodes to buy) or queue."""

    goal: PlanKind
    target: Annotated[str, Meta(description="fit: [namespace/][type/]name; all pending pods if empty.")] = ""
    nodes: Annotated[int, Meta(ge=1, description="free: how many nodes to empty, or domains.")] = 1
    pool: Annotated[str, Meta(description="free: only nodes of this pool.")] = ""
    selector: Annotated[str, Meta(description="free: only nodes with these labels, as key=value,...")] = ""
    domain: Annotated[str, Meta(description="free: empty all nodes of one value of this label, such as a rack.")] = ""
    max_moves: Annotated[int, Meta(ge=0, description="free: move at most so many pods.")] | None = None
    prices: Annotated[
        tuple[dict[str, Any], ...],
        Meta(description="consolidate, pool: types with type, cpu, memory, price, and gpus, labels, pods, max."),
    ] = ()
    save: Annotated[float, Meta(gt=0, le=100, description="consolidate: so many percent; else all.")] | None = None
    replace: Annotated[bool, Meta(description="consolidate: new nodes may come in the place of others.")] = False
    exempt: Annotated[tuple[str, ...], Meta(description="Pods with these labels stay, as key=value,...")] = ()
    keep_priority: Annotated[int, Meta(description="Pods of this priority, or a higher one, stay.")] = CRITICAL
    delete_emptydir_data: Annotated[bool, Meta(description="Move pods with local data, too.")] = False
    effort: Annotated[int, Meta(ge=0, le=MOST_EFFORT, description="How many groups of nodes are packed anew.")] = (
        PlanSearch.effort
    )

    @property
    def needs_prices(self) -> bool:
        return self.goal in (PlanKind.CONSOLIDATE, PlanKind.POOL)


def plan_for(
    cluster: ClusterModel,
    question: PlanQuestion,
    search: PlanSearch,
    *,
    namespace: str = "",
    prices: PriceList | None = None,
    observed_at: str,
) -> Plan:
    """The best plan that was found, checked. `prices` is a list from files. Raises PlanError and other UserErrors."""
    require()
    rules = MovingRules(
        tuple(map(read_selector, question.exempt)), question.keep_priority, question.delete_emptydir_data
    )
    if question.needs_prices and prices is None:
        prices = price_list((f"prices[{i}]", entry) for i, entry in enumerate(question.prices))
    match question.goal:
        case PlanKind.FREE:
            chosen = read_selector(question.selector) if question.selector else None
            goal = FreeGoal(
                question.nodes, question.pool, chosen, question.domain, question.max_moves, question.selector
            )
            plan = plan_free(cluster, goal, rules, search)
        case PlanKind.FIT:
            target = question.target
            pods = pending_of(cluster, target, namespace or "default") if target else cluster.pending()
            plan = plan_fit(cluster, pods, target or "all pending pods", rules, search)
        case PlanKind.CONSOLIDATE:
            assert prices is not None
            saving = ConsolidateGoal(question.save, prices.types if question.replace else ())
            plan = plan_consolidate(cluster, saving, prices.by_type, rules, search)
        case PlanKind.POOL:
            assert prices is not None
            plan = plan_pool(cluster, cluster.pending(), prices, search)
        case PlanKind.QUEUE:
            plan = plan_queue(cluster, search)
    return replace(plan, observed_at=observed_at)

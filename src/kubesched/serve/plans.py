"""Plans for programs and for the page: what is asked for, and the plan that answers it, within the time there is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.selectors import read_selector
from kubesched.ask.service import CheckTime, QueryService, QuestionTimeoutError
from kubesched.ask.targets import QuestionRequest, RequestError, pending_of
from kubesched.planning import solver
from kubesched.planning.consolidate import ConsolidateGoal, plan_consolidate
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.fit import plan_fit
from kubesched.planning.free import FreeGoal, plan_free
from kubesched.planning.movable import CRITICAL, MovingRules
from kubesched.planning.plan import Plan
from kubesched.planning.pool import plan_pool
from kubesched.planning.prices import PriceList, price_list
from kubesched.planning.queue import plan_queue
from kubesched.simulate.cluster import ClusterModel

T = TypeVar("T")

MOST_EFFORT = 1_000
Count = Annotated[int, msgspec.Meta(ge=1)]
_TARGET = "To fit: the [namespace/][type/]name of a pod, a workload or a PodGroup; empty for all pods that wait."
_PRICES = "Types of nodes with type, cpu, memory, price, and maybe gpus, labels, pods, max; NodePools and NodeOverlays."


class PlanQuestion(QuestionRequest, frozen=True, kw_only=True):
    """What is to be done so that nodes are free, pods fit, less is paid, or the queue runs?"""

    goal: Literal["free", "fit", "consolidate", "pool", "queue"]
    nodes: Count = 1
    """To free: so many, or so many domains."""
    pool: str = ""
    selector: str = ""
    domain: str = ""
    """A label: all nodes of one value are freed together."""
    max_moves: Annotated[int, msgspec.Meta(ge=0)] | None = None
    target: Annotated[str, msgspec.Meta(description=_TARGET)] = ""
    prices: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(description=_PRICES)] = ()
    save: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    """To consolidate: percent of the cost; without it as much as possible."""
    replace: bool = False
    """Whether new nodes may come in the place of others."""
    exempt: tuple[str, ...] = ()
    """Pods with these labels stay."""
    keep_priority: int = CRITICAL
    delete_local_data: bool = False
    effort: Annotated[int, msgspec.Meta(ge=0, le=MOST_EFFORT)] = 20


async def plan_now(question: PlanQuestion, service: QueryService, look: Callable[[Plan, ClusterModel], T]) -> T:
    """How the plan for the cluster of this moment looks; the best so far if time is short. RequestError, BusyError."""

    def answer(objects: tuple[KubeObject, ...], check_time: CheckTime) -> T:
        cluster, observed_at = service.cluster.copy(objects), datetime.now(UTC).isoformat(timespec="seconds")
        search = PlanSearch(is_over=lambda: _is_over(check_time), effort=question.effort)
        try:
            solver.require()
            return look(planned(question, cluster, search, observed_at), cluster)
        except UserError as error:
            raise RequestError(*error.lines) from error

    return await service.run(service.all_objects, answer)


def _is_over(check_time: CheckTime) -> bool:
    try:
        check_time()
    except QuestionTimeoutError:
        return True
    return False


def planned(
    question: PlanQuestion,
    cluster: ClusterModel,
    search: PlanSearch,
    observed_at: str,
    listed: PriceList | None = None,
) -> Plan:
    """The plan that a question asks for; `listed` are prices from files, in the place of its own. UserError."""
    rules = MovingRules(tuple(map(read_selector, question.exempt)), question.keep_priority, question.delete_local_data)
    match question.goal:
        case "free":
            chosen = read_selector(question.selector) if question.selector else None
            goal = FreeGoal(
                question.nodes, question.pool, chosen, question.domain, question.max_moves, question.selector
            )
            return plan_free(cluster, goal, rules, search, observed_at)
        case "fit":
            pods = pending_of(cluster, question.target, "default") if question.target else cluster.pending()
            return plan_fit(cluster, pods, question.target or "all pending pods", rules, search, observed_at)
        case "consolidate":
            prices = listed or _prices(question)
            saving = ConsolidateGoal(question.save, prices.types if question.replace else ())
            return plan_consolidate(cluster, saving, prices.by_type, rules, search, observed_at)
        case "pool":
            return plan_pool(cluster, cluster.pending(), listed or _prices(question), search, observed_at)
        case "queue":
            return plan_queue(cluster, search, observed_at)


def _prices(question: PlanQuestion) -> PriceList:
    return price_list((f"prices[{i}]", entry) for i, entry in enumerate(question.prices))

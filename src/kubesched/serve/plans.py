"""Plans for programs, agents and the page: for the cluster as it is now, within the timeout of the question."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.ask.service import CheckTime, QueryService
from kubesched.ask.targets import RequestError
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.plan import Plan
from kubesched.planning.question import PlanQuestion, plan_for
from kubesched.simulate.cluster import ClusterModel

T = TypeVar("T")


async def plan_now(question: PlanQuestion, service: QueryService, look: Callable[[Plan, ClusterModel], T]) -> T:
    """How the plan for the cluster of this moment looks. Raises RequestError and BusyError.

    It is the best that was found in half of the time; the other half is for its checks.
    """

    def answer(objects: tuple[KubeObject, ...], check_time: CheckTime) -> T:
        check_time()
        end = time.monotonic() + service.slow_timeout / 2
        cluster, observed_at = service.cluster.copy(objects), datetime.now(UTC).isoformat(timespec="seconds")
        search = PlanSearch(is_over=lambda: time.monotonic() > end, effort=question.effort)
        try:
            return look(plan_for(cluster, question, search, observed_at=observed_at), cluster)
        except UserError as error:
            raise RequestError(*error.lines) from error

    return await service.run(service.all_objects, answer)

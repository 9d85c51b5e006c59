"""What preemption would do on each node: take out all pods of lower priority, then put back as many as possible.

Rows are worked on all at once where the filters look only at node objects and totals. Where one of them looks
further, at neighbours or volumes, rows are worked on one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.filters import FilterRunner
from kubesched.framework.nodes import WhatIf
from kubesched.framework.status import Code, Status, unresolvable
from kubesched.plugins.default_preemption.budgets import Budgets
from kubesched.plugins.default_preemption.candidates import Candidate
from kubesched.state.columns import Rows
from kubesched.state.pods import PlacedPod

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


@dataclass
class DryRun:
    """Rows that could be made to fit, and why the others could not."""

    potential: Rows
    """The rows that were tried."""
    candidates: list[Candidate] = field(default_factory=list)
    failures: list[tuple[Status, Rows]] = field(default_factory=list)

    def reasons(self) -> dict[str, int]:
        """How many rows failed for each reason."""
        counts: dict[str, int] = {}
        for status, rows in self.failures:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        return counts

    def error(self) -> Status | None:
        """The first row that broke rather than said no."""
        return next((status for status, _ in self.failures if status.code is Code.ERROR), None)


def dry_run(cycle: Cycle, filters: FilterRunner, potential: Rows) -> DryRun:
    """Try preemption on every row that might be helped by it."""
    result = DryRun(potential)
    table, pods = cycle.state.nodes, cycle.state.pods
    priority = cycle.pod.priority
    if not len(potential):
        return result
    if not pods.has_lower_priority_than(priority):
        result.failures.append((NO_VICTIMS, potential))
        return result
    with_victims = pods.rows_with_lower_priority(priority, table.size)[potential]
    if not with_victims.all():
        result.failures.append((NO_VICTIMS, potential[~with_victims]))
    budgets = Budgets(cycle.state.objects)
    for row in potential[with_victims].tolist():
        outcome = one_row(cycle, filters, budgets, row)
        if isinstance(outcome, Status):
            result.failures.append((outcome, np.array([row])))
        else:
            result.candidates.append(outcome)
    return result


def one_row(cycle: Cycle, filters: FilterRunner, budgets: Budgets, row: int) -> Candidate | Status:
    """The victims on one row, or why it would not help to take everybody out."""
    world = WhatIf(cycle.state, np.array([row]))
    removed = [pod for pod in world.pods(0) if pod.pod.priority < cycle.pod.priority]
    present: list[PlacedPod] = []
    for pod in removed:
        filters.leave(cycle, world, pod)
    try:
        status = filters.check_with_nominated(cycle, world)
        if status is not None:
            return status
        breaking, harmless = budgets.split(sorted(removed, key=lambda pod: pod.importance))
        victims: list[PlacedPod] = []
        violations = 0
        for pod in (*breaking, *harmless):
            filters.arrive(cycle, world, pod)
            if filters.check_with_nominated(cycle, world) is None:
                present.append(pod)
                continue
            filters.leave(cycle, world, pod)
            victims.append(pod)
            violations += pod in breaking
    finally:
        # What plugins noted about placed pods is as before: the next row starts from there.
        for pod in removed:
            if pod not in present:
                filters.arrive(cycle, world, pod)
    victims.sort(key=lambda pod: pod.importance)
    return Candidate(row, tuple(victims), violations)

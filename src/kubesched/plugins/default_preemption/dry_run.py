"""What preemption would do on each node: take out all pods of lower priority, then put back as many as possible.

Rows are worked on all at once where the filters look only at node objects and totals. Where one of them looks
further, at neighbours or volumes, and depends on a pod that could leave or that is nominated there, rows are worked
on one at a time.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import WhatIf
from kubesched.framework.nominated import NominatedAtOrAbove, NominatedColumns
from kubesched.framework.plugin import WhatIfRunner
from kubesched.framework.status import Code, Status, error
from kubesched.plugins.default_preemption.all_at_once import Filters
from kubesched.plugins.default_preemption.candidates import Candidate, EvictionBudgets, best_candidates
from kubesched.plugins.default_preemption.costs import NO_VICTIMS, BatchedRows, no_victims
from kubesched.state.columns import Bool, Rows
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod


class DryRun:
    """Rows that could be made to fit, and why the others could not."""

    def __init__(self, potential: Rows) -> None:
        self.potential = potential
        """The rows that were tried."""
        self.failures: list[tuple[Status, Rows]] = []
        self.singles: list[Candidate] = []
        """Candidates that were worked on one at a time."""
        self.tried_singly = 0
        self.many: BatchedRows | None = None
        """Candidates that were worked on all at once."""

    @property
    def has_candidates(self) -> bool:
        """Whether there is any candidate."""
        return bool(self.singles) or (self.many is not None and len(self.many.rows) > 0)

    def candidates(self) -> list[Candidate]:
        """All candidates. There may be thousands: for explanations only."""
        many = [] if self.many is None else [self.many.candidate(row) for row in self.many.rows.tolist()]
        return [*self.singles, *many]

    def with_candidates(self, candidates: list[Candidate]) -> DryRun:
        """The same outcome with other candidates."""
        narrowed = DryRun(self.potential)
        narrowed.failures, narrowed.singles, narrowed.tried_singly = self.failures, candidates, self.tried_singly
        return narrowed

    def best_rows(self) -> list[int]:
        """The rows of the candidates that nothing tells apart from the best."""
        singles = best_candidates(self.singles)
        if self.many is None or not len(self.many.rows):
            return [candidate.row for candidate in singles]
        rows = self.many.best_rows
        if not singles:
            return rows
        cost = self.many.candidate(rows[0]).cost
        together = [candidate.row for candidate in singles if candidate.cost <= cost]
        return together if singles[0].cost < cost else rows + together

    def candidate(self, row: int) -> Candidate:
        """The candidate of one row."""
        for candidate in self.singles:
            if candidate.row == row:
                return candidate
        assert self.many is not None
        return self.many.candidate(row)

    def reasons(self) -> dict[str, int]:
        """How many rows failed for each reason."""
        counts: dict[str, int] = {}
        for status, rows in self.failures:
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        return counts

    def rejectors(self) -> frozenset[str]:
        """The plugins that reject rows even if all lesser pods leave."""
        return frozenset(status.plugin for status, _ in self.failures if status.is_rejection) - {""}

    def error(self) -> Status | None:
        """What broke, rather than said no, on some rows; several errors are listed, each once."""
        broken = [status.message for status, _ in self.failures if status.code is Code.ERROR]
        messages = list(dict.fromkeys(broken))
        if not messages:
            return None
        return error(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")


def dry_run(cycle: Cycle, what_if: WhatIfRunner, potential: Rows, *, enough: int, start: int) -> DryRun:
    """Try preemption on every row that might be helped by it.

    Rows that must be worked on one at a time are taken in turn, beginning with the one at `start`, until there are
    `enough` candidates, of which one at least breaks no disruption budget.
    """
    run = DryRun(potential)
    if not len(potential):
        return run
    if not cycle.state.pods.has_lower_priority_than(cycle.priority):
        run.failures.append((NO_VICTIMS, potential))
        return run
    budgets = EvictionBudgets(cycle.state.objects, cycle.state.features.release)
    ahead = cycle.state.companion(NominatedColumns).at_or_above(cycle.pod, cycle.priority)
    active = tuple(plugin for plugin in what_if.filters if plugin.name not in cycle.skipped_filters)
    is_dependent = _dependent_rows(cycle, active, ahead)[potential]
    run.many = BatchedRows(cycle, active, budgets, ahead, potential[~is_dependent])
    run.failures += run.many.failures
    rows, harmless = potential[is_dependent], False
    for row in np.roll(rows, -(start % max(1, len(rows)))).tolist():
        if harmless and len(run.singles) >= enough:
            break
        run.tried_singly += 1
        outcome = one_row(cycle, what_if, budgets, row)
        if isinstance(outcome, Candidate) and not outcome.victims:
            outcome = no_victims(cycle.state.nodes.names[row])
        if isinstance(outcome, Status):
            run.failures.append((outcome, np.array([row])))
        else:
            run.singles.append(outcome)
            harmless |= not outcome.violations
    return run


def _dependent_rows(cycle: Cycle, filters: Filters, ahead: NominatedAtOrAbove) -> Bool:
    """Per row whether a filter depends on a pod there that could leave, or on one of those nominated there."""
    dependent = np.zeros(cycle.state.nodes.size, dtype=np.bool_)
    wide = [plugin for plugin in filters if plugin.looks_at_pods and plugin.depends_on_pods(cycle)]
    if not wide:
        return dependent

    def matters(pod: PlacedPod) -> bool:
        return any(plugin.depends_on_pod(cycle, pod) for plugin in wide)

    lesser = list(cycle.state.pods.with_lower_priority(cycle.priority))
    one_of_each: dict[PodFacts, PlacedPod] = {pod.facts: pod for pod in lesser}
    mattering = {facts for facts, pod in one_of_each.items() if matters(pod)}
    if mattering:
        dependent[[pod.row for pod in lesser if pod.facts in mattering]] = True
    dependent[ahead.rows[ahead.rows_with(matters)]] = True
    return dependent


def one_row(cycle: Cycle, what_if: WhatIfRunner, budgets: EvictionBudgets, row: int) -> Candidate | Status:
    """The victims on one row, or why it would not help to take all lesser pods out."""
    world = WhatIf(cycle.state, np.array([row]))
    removed = [pod for pod in world.pods(0) if pod.pod.priority < cycle.priority]
    if not removed:
        return NO_VICTIMS
    present: list[PlacedPod] = []
    for pod in removed:
        what_if.remove_pod(cycle, world, pod)
    try:
        status = what_if.check_with_nominated(cycle, world)
        if status is not None:
            return status
        breaking, harmless = budgets.split(sorted(removed, key=lambda pod: pod.importance))
        victims: list[PlacedPod] = []
        violations = 0
        for pod in (*breaking, *harmless):
            what_if.add_pod(cycle, world, pod)
            if what_if.check_with_nominated(cycle, world) is None:
                present.append(pod)
                continue
            what_if.remove_pod(cycle, world, pod)
            victims.append(pod)
            violations += pod in breaking
    finally:
        # What plugins noted about placed pods is as before: the next row starts from there.
        for pod in removed:
            if pod not in present:
                what_if.add_pod(cycle, world, pod)
    victims.sort(key=lambda pod: pod.importance)
    return Candidate(row, tuple(victims), violations)

"""Runs pre-filters and filters, in order, on all rows at once; and again on rows as they might be (`WhatIfRunner`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial

import numpy as np

from kubesched.framework.answers import AnswerCache
from kubesched.framework.bound_plugins import BoundFilter, BoundPreFilter
from kubesched.framework.copies import CopyRoom
from kubesched.framework.copy_limits import CopyLimit
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import FilterOutcome, with_plugin_name
from kubesched.framework.equivalence import EquivalenceCache, FilterGroup
from kubesched.framework.errors import PluginError
from kubesched.framework.nodes import FewNodes, Nodes, WhatIf
from kubesched.framework.nominated import NominatedColumns
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.pre_filtering import FilterPlan, PreFilterOutcome
from kubesched.framework.status import SKIP, Code, Status, error, unresolvable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Rows
from kubesched.state.facts import StateKey
from kubesched.state.pods import PlacedPod

ColumnAnswers = dict[str, tuple[Int32 | None, Bool]]
"""By filter its answer about all rows: rejection ids, if there are any, and where it passes."""


class FilterRunner:
    """The pre-filters and filters of a profile on one cluster."""

    def __init__(
        self,
        state: ClusterState,
        pre_filters: Sequence[PreFilterPlugin],
        filters: Sequence[FilterPlugin],
        answers: AnswerCache,
        equivalence: EquivalenceCache,
    ) -> None:
        self.state = state
        self.pre_filters = tuple(map(BoundPreFilter, pre_filters))
        self.filters = tuple(filters)
        self._bound = tuple(BoundFilter(plugin, state, answers) for plugin in filters)
        self._equivalence = equivalence
        self._plan_key = StateKey[FilterPlan]("filters")
        self._plans: dict[frozenset[str], FilterPlan] = {}
        self._groups: dict[tuple[BoundFilter, ...], FilterGroup] = {}
        self._skips: dict[tuple[frozenset[str], tuple[str, ...]], frozenset[str]] = {}
        self._adjusting = tuple(plugin for plugin in pre_filters if plugin.adjusts)

    # -- before any node ----------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> PreFilterOutcome:
        """Ask all pre-filters; after an unresolvable rejection no more. Preemption may help after another one."""
        if cycle.facts.extended:
            self.state.give_columns(cycle.facts)
        plan = cycle.shared_facts.find(self._plan_key)
        outcome = PreFilterOutcome(plan)
        skipped: list[str] = []
        skipped_for_class: list[str] = []
        for plugin in self.pre_filters if plan is None else plan.pre_filters:
            answer = plugin.pre_filter(cycle)
            if answer is None:
                continue
            if answer is SKIP:
                skipped.append(plugin.name)
                if plan is None and plugin.skips_class(cycle.pod, cycle.facts):
                    skipped_for_class.append(plugin.name)
            elif isinstance(answer, Status):
                if answer.code is Code.UNSCHEDULABLE:
                    outcome.rejected = answer.by(plugin.name)
                    continue
                if answer.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    answer = error(f'running PreFilter plugin "{plugin.name}": {answer.message}')
                outcome.rejected = answer.by(plugin.name)
                cycle.skipped_filters = self._skipped_until(plugin, plan, skipped)
                return outcome
            elif not isinstance(answer, frozenset | set):
                mistake = TypeError(f"pre_filter must answer None, a Status or a set of node names, not {answer!r}")
                raise PluginError(plugin.name, mistake)
            else:
                outcome.narrowed_by.add(plugin.name)
                outcome.names = answer if outcome.names is None else outcome.names & answer
                if not outcome.names:
                    outcome.rejected = _no_node_in_common(outcome.narrowed_by)
                    cycle.skipped_filters = self._skipped_until(plugin, plan, skipped)
                    return outcome
        if plan is None:
            outcome.plan = self._plan_without(frozenset(skipped_for_class))
            cycle.shared_facts.keep(self._plan_key, outcome.plan)
        cycle.skipped_filters = self._all_skipped(plan, skipped)
        return outcome

    def _all_skipped(self, plan: FilterPlan | None, skipped: list[str]) -> frozenset[str]:
        """The names of all skipped plugins. Equal sets are one object, which is a cheap key."""
        if plan is None:
            return frozenset(skipped)
        key = (plan.skipped, tuple(skipped))
        names = self._skips.get(key)
        if names is None:
            names = self._skips[key] = plan.skipped.union(skipped)
        return names

    def _skipped_until(self, rejector: BoundPreFilter, plan: FilterPlan | None, skipped: list[str]) -> frozenset[str]:
        """The same, without plugins after the one that rejected the pod: they were not asked."""
        asked = {plugin.name for plugin in self.pre_filters[: self.pre_filters.index(rejector)]}
        return self._all_skipped(plan, skipped) & asked

    def _plan_without(self, skipped: frozenset[str]) -> FilterPlan:
        if skipped not in self._plans:
            filters = tuple(bound for bound in self._bound if bound.name not in skipped)
            narrow = tuple(
                bound for bound in filters if bound.plugin.is_columnar and bound.plugin.filter_reads.is_narrow
            )
            self._plans[skipped] = FilterPlan(
                skipped,
                tuple(plugin for plugin in self.pre_filters if plugin.name not in skipped),
                filters,
                self._groups.setdefault(narrow, FilterGroup(narrow)),
                frozenset(bound.name for bound in narrow),
                tuple(bound for bound in filters if bound not in narrow),
            )
        return self._plans[skipped]

    # -- all rows -----------------------------------------------------------------------------------------------------

    def search(self, cycle: Cycle, plan: FilterPlan | None, answers: ColumnAnswers) -> FilterOutcome | None:
        """The live rows that fit, without the rejections of the others; None if `run` must find them.

        The usual case, made short: EquivalenceCache answers filters of narrow scope together for all equivalent pods.
        Answers of other filters about all rows are put into `answers`.
        """
        if plan is None or not plan.narrow_names.isdisjoint(cycle.skipped_filters):
            return None
        passing = self._equivalence.passing_rows(cycle, plan.narrow)
        if passing is None or not passing.count:
            return None
        outcome = FilterOutcome(passing.rows, passing)
        for bound in plan.wide:
            if bound.name not in cycle.skipped_filters:
                plugin = bound.plugin
                ids, passes = bound.ask(cycle, outcome.feasible, False)
                if plugin.is_columnar:
                    answers[bound.name] = ids, passes
                if ids is not None:
                    if plugin.rejections.has_errors and _first_error(plugin, ids, outcome.feasible) is not None:
                        return None
                    outcome.restrict(outcome.feasible & passes)
        if self.state.nominated.nodes:
            self._judge_with_nominated(cycle, outcome, outcome.feasible)
            if outcome.broken is not None:
                return None
        return outcome if outcome.passing is not None or outcome.feasible.any() else None

    def run(
        self,
        cycle: Cycle,
        considered: Bool,
        *,
        few: list[int] | None = None,
        exhaustive: bool = False,
        answers: ColumnAnswers | None = None,
    ) -> FilterOutcome:
        """Ask the filters about the rows considered, but for `answers` that `search` has just got.

        `exhaustive` goes on when no row is left, for an explanation.
        If the rows considered are `few`, filters are asked about no others: the next pod of a DaemonSet has another
        node, so a column of answers would be made for one row and never used again.
        """
        if few and not exhaustive:
            return self._run_on_few(cycle, considered, few)
        outcome = FilterOutcome(considered)
        standing = considered
        plan = cycle.shared_facts.find(self._plan_key)
        for bound in self._bound if plan is None else plan.filters:
            if bound.name in cycle.skipped_filters:
                continue
            answer = answers.get(bound.name) if answers else None
            ids, passes = answer or bound.ask(cycle, standing, exhaustive)
            if ids is None:
                continue
            plugin = bound.plugin
            outcome.columns.append((plugin.rejections, ids))
            if plugin.rejections.has_errors and outcome.broken is None:
                outcome.broken = _first_error(plugin, ids, standing)
            standing = standing & passes
            if not exhaustive and (outcome.broken is not None or not standing.any()):
                break
        outcome.restrict(standing)
        if self.state.nominated.nodes:
            self._judge_with_nominated(cycle, outcome, considered)
        return outcome

    def _run_on_few(self, cycle: Cycle, considered: Bool, rows: list[int]) -> FilterOutcome:
        outcome, nodes = FilterOutcome(considered), FewNodes(self.state, rows)
        plan = cycle.shared_facts.find(self._plan_key)
        for bound in self._bound if plan is None else plan.filters:
            if bound.name in cycle.skipped_filters:
                continue
            ids_of_rows = bound.ask_about_some(cycle, nodes, len(rows))
            if not any(ids_of_rows):
                continue
            plugin = bound.plugin
            rejected = {row: rejection_id for row, rejection_id in zip(rows, ids_of_rows, strict=True) if rejection_id}
            ids = np.zeros(len(considered), dtype=np.int32)
            ids[list(rejected)] = list(rejected.values())
            outcome.columns.append((plugin.rejections, ids))
            if plugin.rejections.has_errors:
                outcome.broken = _first_error(plugin, ids, outcome.feasible)
            outcome.restrict(outcome.feasible & (ids == 0))
            rows = [row for row in rows if row not in rejected]
            if outcome.broken is not None or not rows:
                break
            nodes = FewNodes(self.state, rows)
        if self.state.nominated.nodes:
            self._judge_with_nominated(cycle, outcome, considered)
        return outcome

    def repeats(self, outcome: FilterOutcome, cycle: Cycle, names: Set[str], skipped: Set[str]) -> bool:
        """Whether these plugins answer about this pod as in an outcome of the same moment, in which no node fits."""
        for plugin in self.pre_filters:
            if plugin.name in names:
                answer = plugin.pre_filter(cycle)
                if answer is not (SKIP if plugin.name in skipped else None):
                    return False
        columns, standing = dict(outcome.columns), outcome.considered
        for bound in self._bound:
            if bound.name in skipped:
                continue
            ids = columns.get(bound.plugin.rejections)
            if bound.name in names:
                own_ids, _ = bound.ask(cycle, standing, False)
                before, after = (0 if column is None else column[standing] for column in (ids, own_ids))
                if np.any(before != after):
                    return False
            if ids is not None:
                standing = standing & (ids == 0)
                if not standing.any():
                    break
        return True

    def copy_room(self, cycle: Cycle) -> CopyRoom | None:
        """How many pods like this one fit, one after another; None if a filter cannot tell."""
        outcome = self.pre_filter(cycle)
        if outcome.rejected is not None or outcome.names is not None or self.state.nominated.nodes:
            return None
        nodes = Nodes(self.state)
        room = np.where(self.state.nodes.live[: len(nodes)], np.iinfo(np.int64).max, 0)
        limits: list[CopyLimit] = []
        for bound in self._bound:
            if bound.name in cycle.skipped_filters:
                continue
            if bound.goes_by_objects:
                room[~bound.cached_answer(cycle).passes] = 0
                continue
            copies = bound.plugin.copies(cycle, nodes)
            if copies is None:
                return None
            room = np.minimum(room, copies.rows)
            limits += copies.limits
        return CopyRoom(room, tuple(limits))

    # -- rows as they might be ----------------------------------------------------------------------------------------

    def check(self, cycle: Cycle, world: WhatIf) -> Status | None:
        """The first rejection of a single row as it might be."""
        for bound in self._bound:
            if bound.name in cycle.skipped_filters:
                continue
            status = bound.check(cycle, world)
            if status is not None:
                return with_plugin_name(bound.name, status)
        return None

    def check_with_nominated(self, cycle: Cycle, world: WhatIf) -> Status | None:
        """The first rejection of a single row, both with and without the pods nominated there that go before."""
        row = world.row(0)
        nominated = self._nominated_ahead(cycle, row)
        if nominated:
            with self.imagine(cycle, world, nominated):
                status = self.check(cycle, world)
            if status is not None:
                return status
        return self.check(cycle, world)

    @contextmanager
    def imagine(self, cycle: Cycle, world: WhatIf, arrivals: Sequence[PlacedPod]) -> Iterator[None]:
        """The single row of a view with more pods on it, for as long as the context lasts."""
        for pod in arrivals:
            self.add_pod(cycle, world, pod)
        try:
            yield
        finally:
            for pod in reversed(arrivals):
                self.remove_pod(cycle, world, pod)

    def add_pod(self, cycle: Cycle, world: WhatIf, pod: PlacedPod) -> None:
        """Put a pod onto the single row of a view, also in what pre-filters wrote down about placed pods."""
        world.add(0, pod)
        for plugin in self._adjusting:
            if plugin.name not in cycle.skipped_filters:
                plugin.add_pod(cycle, pod, world.row(0))

    def remove_pod(self, cycle: Cycle, world: WhatIf, pod: PlacedPod) -> None:
        """The opposite of `add_pod`."""
        world.remove(0, pod)
        for plugin in self._adjusting:
            if plugin.name not in cycle.skipped_filters:
                plugin.remove_pod(cycle, pod, world.row(0))

    def _nominated_ahead(self, cycle: Cycle, row: int) -> list[PlacedPod]:
        """Other pods nominated to a row, of the same or a higher priority: this pod must leave room for them."""
        pods = self.state.nominated.on_node(self.state.nodes.names[row])
        identity = cycle.pod.identity
        ahead = [pod for pod in pods if pod.priority >= cycle.priority and pod.identity != identity]
        return [PlacedPod(pod, self.state.facts(pod), row, assumed=True) for pod in ahead]

    def _judge_with_nominated(self, cycle: Cycle, outcome: FilterOutcome, among: Bool) -> None:
        """Judge these rows again, with the pods nominated there that go before this one.

        Filters that look at node objects answer as before. Filters that look at totals are asked about all rows at
        once; those that look at pods are asked again, row by row, where they depend on one of those pods.
        """
        ahead = self.state.companion(NominatedColumns).at_or_above(cycle.pod, cycle.priority, among)
        places = np.flatnonzero(among[ahead.rows])
        if not len(places):
            return
        rows = ahead.rows[places]
        world = WhatIf(self.state, rows)
        ahead.count_in(world, np.arange(len(rows)), places)
        columns, standing, no_ids = dict(outcome.columns), ~world.none(), np.zeros(len(rows), dtype=np.int32)
        for bound in self._bound:
            if bound.name in cycle.skipped_filters:
                continue
            plugin = bound.plugin
            column = columns.get(plugin.rejections)
            ids, one_by_one = (no_ids if column is None else column[rows]), world.none()
            if plugin.looks_at_totals:
                ids_without, ids = ids, bound.filter(cycle, world)
                if (ids != ids_without).any():
                    self._reject_for_nominated(outcome, plugin, rows, ids * standing)
                    one_by_one = standing & (ids_without != 0) & (ids == 0)  # passes only because it is fuller
            elif plugin.looks_at_pods and plugin.depends_on_pods(cycle):
                one_by_one = standing & ahead.rows_with(partial(plugin.depends_on_pod, cycle))[places]
            for i in np.flatnonzero(one_by_one).tolist():
                self._judge_row(cycle, outcome, int(rows[i]), ahead.pods_at(int(places[i])))
            standing &= ~one_by_one & (ids == 0)
            if not standing.any():
                break

    def _reject_for_nominated(self, outcome: FilterOutcome, plugin: FilterPlugin, rows: Rows, row_ids: Int32) -> None:
        """One filter rejects rows together with the pods nominated there."""
        ids = np.zeros(len(outcome.considered), dtype=np.int32)
        ids[rows] = row_ids
        outcome.for_nominated.append((plugin.rejections, ids))
        if outcome.broken is None and plugin.rejections.has_errors:
            outcome.broken = _first_error(plugin, ids, outcome.considered)
        outcome.restrict(outcome.feasible & (ids == 0))

    def _judge_row(self, cycle: Cycle, outcome: FilterOutcome, row: int, arrivals: Sequence[PlacedPod]) -> None:
        world = WhatIf(self.state, np.array([row]))
        with self.imagine(cycle, world, arrivals):
            status = self.check(cycle, world)
        if status is None:
            return
        if not status.is_rejection and outcome.broken is None:
            outcome.broken = status
        outcome.overrides[row] = status
        if outcome.feasible[row]:
            outcome.restrict(outcome.feasible.copy())
            outcome.feasible[row] = False


def _first_error(plugin: FilterPlugin, ids: Int32, standing: Bool) -> Status | None:
    rows = np.flatnonzero(standing & plugin.rejections.errors_among(ids))
    return plugin.rejections.status_of(int(ids[rows[0]])) if len(rows) else None


def _no_node_in_common(plugins: set[str]) -> Status:
    names = sorted(plugins)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")

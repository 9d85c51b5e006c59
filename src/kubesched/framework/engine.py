"""The decision for one pod: which nodes fit, which is best, and when none fits, whom to preempt.

A pure function of the cluster state, the profile and the generator that draws among equals. With `explain` the engine
asks the same plugins the same questions; it only goes on asking where the outcome is already clear.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import replace

import numpy as np

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.answers import AnswerCache
from kubesched.framework.bound_profile import BoundProfile
from kubesched.framework.budget import Budget, BudgetExceededError
from kubesched.framework.copies import CopyRoom
from kubesched.framework.cycle import Cycle, CycleStateMissingError
from kubesched.framework.decision import Decision, Draw, Outcome
from kubesched.framework.diagnosis import Diagnosis, FilterOutcome
from kubesched.framework.equivalence import EquivalenceCache
from kubesched.framework.errors import Blame, PluginError
from kubesched.framework.extender import AnswersOutdatedError, Extender, ExtenderAnswers, ExtenderError, Point
from kubesched.framework.filters import ColumnAnswers
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.pre_filtering import PreFilterOutcome
from kubesched.framework.profile import Profile
from kubesched.framework.repeated import RepeatedFailures
from kubesched.framework.sampling import NodeSample, Sampler
from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.framework.stopwatch import Stopwatch
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool

_FEW = 8
"""If pre-filters leave at most so many nodes, filters are asked about no others."""

NO_NODES = "no nodes available to schedule pods"


class Engine:
    """Decides for pods, one at a time, on one cluster state."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Iterable[Profile],
        draw: Callable[[int], int],
        percentage_of_nodes_to_score: int = 0,
        *,
        choose: Callable[[list[str]], str] | None = None,
        extenders: Sequence[Extender] = (),
        budget: Budget | None = None,
        repeated: RepeatedFailures | None = None,
    ) -> None:
        """`draw(n)` returns a number from 0 to n - 1: the choice among n equally good nodes.

        `choose`, if given, decides by name instead, to repeat what another scheduler did.
        `extenders` have a say after the plugins, in this order. Without a `budget` a decision may take for ever.
        """
        self.state = state
        self.budget = budget or Budget()
        self.draw = draw
        self._choose = choose
        self._deciding = tuple(e for e in extenders if e.filters or e.prioritizes or e.preempts)
        self._repeated = repeated or RepeatedFailures(state)
        self._sampler = Sampler(state, percentage_of_nodes_to_score)
        answers = AnswerCache(state)
        equivalence = EquivalenceCache(state, answers)
        self._profiles = {
            profile.name: BoundProfile(profile, state, answers, equivalence, self._deciding) for profile in profiles
        }

    def knows(self, scheduler_name: str) -> bool:
        """Whether there is a profile of this name."""
        return scheduler_name in self._profiles

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """The status of the PreEnqueue plugin that keeps the pod from being tried, if there is one."""
        for plugin in self._profiles[pod.spec.scheduler_name].pre_enqueue:
            with Blame(plugin.name):
                status = plugin.pre_enqueue(pod, self.state)
            if status is not None:
                return status.by(plugin.name)
        return None

    def decide(
        self,
        pod: Pod,
        *,
        explain: bool = False,
        watch: Stopwatch | None = None,
        find: Callable[[str], Pod | None] | None = None,
        extender_answers: ExtenderAnswers | None = None,
        spent: float | None = None,
        candidate_rows: Bool | None = None,
        run_post_filter: bool = True,
    ) -> Decision:
        """Find the best node for a pod, or say why there is none. Nothing is changed.

        `find` looks up the latest version of a pod by its key, for plugins that make room; else `pod` is the latest.
        AnswersMissingError if extenders have to be asked first; then decide again with the same `extender_answers`.
        TurnOverError if it takes long and `spent` is given, the seconds that earlier turns took; then decide again.
        For `candidate_rows` and `run_post_filter` see Cycle.
        """
        for follow in self.state.followers:
            follow()
        profile = self._profiles[pod.spec.scheduler_name]
        if watch is not None and (extender_answers is not None or spent):
            watch.restart()
        self.budget.begin(spent)
        cycle = Cycle(pod, self.state, watch, extender_answers, self.budget)
        if find is not None:
            cycle.latest = find(pod.key)
        cycle.candidate_rows, cycle.run_post_filter = candidate_rows, run_post_filter
        decision = Decision(pod, profile.name, Outcome.SCHEDULED, cycle)
        repeats = profile.repeats_failures and run_post_filter and not explain
        repeats = repeats and candidate_rows is None and extender_answers is None
        try:
            earlier = self._repeated.find(cycle, profile) if repeats else None
            if earlier is not None:
                self._repeat(earlier, decision, cycle, profile)
                return decision
            self._decide(decision, cycle, profile, explain)
            if repeats:
                self._repeated.note(decision, profile)
        except AnswersOutdatedError:
            assert extender_answers is not None
            extender_answers.renew()
            return self.decide(
                pod,
                explain=explain,
                watch=watch,
                find=find,
                extender_answers=extender_answers,
                spent=spent,
                candidate_rows=candidate_rows,
                run_post_filter=run_post_filter,
            )
        except BudgetExceededError as exceeded:
            decision.outcome, decision.status = Outcome.ERROR, error(str(exceeded))
        except PluginError as failure:
            if not isinstance(failure.cause, CycleStateMissingError):
                raise
            decision.outcome, decision.status = Outcome.ERROR, error(str(failure.cause))
        if extender_answers is not None:
            extender_answers.wait_for_turn()
        return decision

    def copy_room(self, pod: Pod) -> CopyRoom | None:
        """How many pods like this one fit, one after another; None if only deciding tells."""
        return self._profiles[pod.spec.scheduler_name].filters.copy_room(Cycle(pod, self.state, budget=self.budget))

    def signature(self, pod: Pod) -> Hashable:
        """Equal for pods that all plugins of their profile treat alike (`Profile.signature`)."""
        return self._profiles[pod.spec.scheduler_name].signature(pod, self.state.facts(pod))

    def answers_for(self, pod: Pod, kind: type[ExtenderAnswers] = ExtenderAnswers) -> ExtenderAnswers | None:
        """An object for the answers of extenders in one attempt at a pod; None if no extender is interested in it."""
        if not self._deciding:
            return None
        interested = [extender for extender in self._deciding if extender.is_interested(pod)]
        return kind(interested, self._node_of) if interested else None

    def _node_of(self, name: str) -> Node:
        return self.state.nodes.node(self.state.nodes.row_of[name])

    def _decide(self, decision: Decision, cycle: Cycle, profile: BoundProfile, explain: bool) -> None:
        if not self.state.nodes.live_count:
            decision.outcome, decision.status = Outcome.UNSCHEDULABLE, unschedulable(NO_NODES)
            if explain:
                decision.trace.pre_filter = profile.filters.pre_filter(cycle)
            return
        pre_filter = decision.trace.pre_filter = profile.filters.pre_filter(cycle)
        if cycle.watch is not None:
            cycle.watch.lap("PreFilter", pre_filter.rejected)
        if pre_filter.rejected is not None:
            if not pre_filter.rejected.is_rejection:
                decision.outcome, decision.status = Outcome.ERROR, pre_filter.rejected
                return
            diagnosis = Diagnosis(self._eligible(cycle), rejected=pre_filter.rejected)
            if not pre_filter.is_rejected_for_good:
                diagnosis.unschedulable_plugins |= pre_filter.narrowed_by
            self._fail(decision, cycle, profile, diagnosis)
            return
        nominated = self._try_nominated(cycle, profile) if cycle.pod.status.nominated_node_name else None
        if isinstance(nominated, int):
            decision.node, decision.evaluated, decision.feasible = self.state.nodes.names[nominated], 1, 1
            if not explain:
                return
        self._search(decision, cycle, profile, pre_filter, nominated, explain)

    def _repeat(self, earlier: Decision, decision: Decision, cycle: Cycle, profile: BoundProfile) -> None:
        """Decide as for a pod with the same signature. Post-filters that declare nothing are asked."""
        cycle.skipped_filters, watch = earlier.cycle.skipped_filters, cycle.watch
        decision.outcome, decision.diagnosis, decision.trace = earlier.outcome, earlier.diagnosis, earlier.trace
        if watch is not None:
            watch.lap("PreFilter")
            watch.lap("Filter")
        if not profile.undeclared:
            decision.post_filter, decision.post_filter_status = earlier.post_filter, earlier.post_filter_status
            if watch is not None:
                watch.lap("PostFilter", earlier.post_filter_status)
            return
        answers = earlier.trace.post_filter_answers or {}
        declared = {name: answer for name, answer in answers.items() if name not in profile.undeclared}
        decision.trace = replace(earlier.trace, post_filter_answers=declared)
        assert earlier.diagnosis is not None
        self._fail(decision, cycle, profile, earlier.diagnosis)

    def _try_nominated(self, cycle: Cycle, profile: BoundProfile) -> int | tuple[int, Status] | None:
        """The row of the nominated node, which is taken if it fits; else its row and why it does not fit."""
        name = cycle.pod.status.nominated_node_name
        row = self.state.nodes.row_of.get(name)
        if row is None or not self._eligible(cycle)[row]:
            return None
        only = np.zeros(self.state.nodes.size, dtype=np.bool_)
        only[row] = True
        outcome = profile.filters.run(cycle, only, few=[row])
        status = outcome.status_of(row)
        if status is None and cycle.extender_answers is not None:
            try:
                status = cycle.extender_answers.rejections(Point.NOMINATED_NODE, cycle.pod, [name]).get(name)
            except ExtenderError:
                return None  # the search that follows asks again, and that answer counts
        return row if status is None else (row, status)

    def _search(
        self,
        decision: Decision,
        cycle: Cycle,
        profile: BoundProfile,
        pre_filter: PreFilterOutcome,
        nominated: int | tuple[int, Status] | None,
        explain: bool,
    ) -> None:
        outcome, column_answers = None, ColumnAnswers()
        # The quick search gives no reasons; should extenders leave no node, those of all filters are due.
        if not explain and pre_filter.names is None and cycle.extender_answers is None:
            outcome = profile.filters.search(cycle, pre_filter.plan, column_answers)
            if outcome is not None and cycle.candidate_rows is not None:
                outcome.restrict(outcome.feasible & cycle.candidate_rows)
        if outcome is None or (cycle.candidate_rows is not None and not outcome.feasible.any()):
            considered, few = self._considered(cycle, pre_filter.names)
            outcome = profile.filters.run(cycle, considered, few=few, exhaustive=explain, answers=column_answers)
        decision.trace.filter_outcome = outcome
        if cycle.watch is not None:
            cycle.watch.lap("Filter", outcome.broken)
        if outcome.broken is not None and not decision.node:
            decision.outcome, decision.status = Outcome.ERROR, outcome.broken
            return
        narrowed, answers = pre_filter.names is not None or cycle.candidate_rows is not None, cycle.extender_answers
        if answers is None:
            sample = self._sampler.sample(outcome, profile.percentage, narrowed, profile.one_is_enough)
        else:
            sample = self._offer(answers, profile, outcome, narrowed)
            try:
                sample = self._ask_extenders(answers, cycle.pod, outcome, sample)
            except ExtenderError as failure:
                if not decision.node:
                    decision.outcome, decision.status = Outcome.ERROR, error(str(failure))
                return
        if sample.feasible_count == 0 and not decision.node:
            self._fail(decision, cycle, profile, self._diagnose(cycle, outcome, pre_filter, nominated))
            return
        if not decision.node:
            decision.feasible, decision.evaluated = sample.feasible_count, sample.evaluated
            if sample.feasible_count == 1:
                decision.node = self.state.nodes.names[int(sample.feasible.argmax())]
        if explain or not decision.node:
            self._score(decision, cycle, profile, sample, explain)

    def _score(
        self, decision: Decision, cycle: Cycle, profile: BoundProfile, sample: NodeSample, explain: bool
    ) -> None:
        """Score the nodes that fit and, unless the choice is made already, choose among the best."""
        scores = profile.scores.run(cycle, sample, explain=explain)
        decision.trace.scores = scores
        if decision.node:
            return
        if scores.broken is not None:
            decision.outcome, decision.status = Outcome.ERROR, scores.broken
            return
        if cycle.extender_answers is not None:
            cycle.extender_answers.wait_for_turn()
        best, names = scores.best(), self.state.nodes.names
        decision.score = best.score
        if self._choose is not None:
            decision.node = self._choose([names[row] for row in best.rows(scores.nodes)])
            decision.draw = Draw(best.among)
            return
        drawn = self.draw(best.among) if best.among > 1 else 0
        decision.draw = Draw(best.among, drawn)
        decision.node = names[best.row(drawn, scores.nodes)]

    def _offer(
        self, answers: ExtenderAnswers, profile: BoundProfile, outcome: FilterOutcome, narrowed: bool
    ) -> NodeSample:
        """The nodes to offer to extenders. An attempt searches once: nodes that were offered stay offered."""
        names = self.state.nodes.names
        rows = answers.offered_rows(outcome.feasible, names)
        if rows is not None:
            feasible = np.zeros(len(outcome.feasible), dtype=np.bool_)
            feasible[rows] = True
            sample = NodeSample(feasible, len(rows), answers.evaluated)
        else:
            sample = self._sampler.sample(outcome, profile.percentage, narrowed, profile.one_is_enough)
        offered = [names[row] for row in np.flatnonzero(sample.feasible).tolist()]
        is_whole = sample.feasible_count == int(np.count_nonzero(outcome.feasible))
        answers.offer(offered, sample.evaluated, is_whole=is_whole)
        return sample

    def _ask_extenders(
        self, answers: ExtenderAnswers, pod: Pod, outcome: FilterOutcome, sample: NodeSample
    ) -> NodeSample:
        """The sample without the nodes that extenders reject; their rejections join the outcome."""
        table = self.state.nodes
        rejections = answers.rejections(Point.FILTER, pod, answers.offered_names)
        rejected = {table.row_of[name]: status for name, status in rejections.items()}
        if sample.feasible_count == len(rejected):
            answers.found_none(others_fit=bool((outcome.feasible & ~sample.feasible).any()))
        if not rejected:
            return sample
        rows = list(rejected)
        outcome.overrides.update(rejected)
        outcome.restrict(outcome.feasible.copy())
        feasible = sample.feasible.copy()
        outcome.feasible[rows] = feasible[rows] = False
        return NodeSample(feasible, sample.feasible_count - len(rows), sample.evaluated)

    def _considered(self, cycle: Cycle, names: Set[str] | None) -> tuple[Bool, list[int] | None]:
        """The rows to look at, and the same as a list if pre-filters left few."""
        table, eligible = self.state.nodes, self._eligible(cycle)
        if names is None:
            return eligible, None
        rows = [row for name in names if (row := table.row_of.get(name)) is not None and eligible[row]]
        considered = np.zeros(table.size, dtype=np.bool_)
        considered[rows] = True
        return considered, sorted(rows) if len(names) <= _FEW else None

    def _eligible(self, cycle: Cycle) -> Bool:
        live = self.state.nodes.live[: self.state.nodes.size]
        return live if cycle.candidate_rows is None else live & cycle.candidate_rows

    def _diagnose(
        self,
        cycle: Cycle,
        outcome: FilterOutcome,
        pre_filter: PreFilterOutcome,
        nominated: int | tuple[int, Status] | None,
    ) -> Diagnosis:
        diagnosis = Diagnosis(self._eligible(cycle), filter_outcome=outcome)
        pre_filter.tell(diagnosis)
        if isinstance(nominated, tuple) and not outcome.considered[nominated[0]]:
            diagnosis.extra[nominated[0]] = nominated[1]
        rejections = (status for status, _ in outcome.tally)
        for status in (*outcome.overrides.values(), *diagnosis.extra.values(), *rejections):
            diagnosis.blame(status)
        return diagnosis

    def _fail(self, decision: Decision, cycle: Cycle, profile: BoundProfile, diagnosis: Diagnosis) -> None:
        """No node fits: ask the post-filters, one after another, whether room can be made."""
        if cycle.extender_answers is not None:
            cycle.extender_answers.wait_for_turn()
        cycle.start_lap()
        self._post_filter(decision, cycle, profile, diagnosis)
        if profile.post_filters:
            cycle.lap("PostFilter", decision.post_filter_status)

    def _post_filter(self, decision: Decision, cycle: Cycle, profile: BoundProfile, diagnosis: Diagnosis) -> None:
        decision.outcome = Outcome.UNSCHEDULABLE
        decision.diagnosis = diagnosis
        if not cycle.run_post_filter:
            return
        answers = decision.trace.post_filter_answers = decision.trace.post_filter_answers or {}
        best: PostFilterResult | None = None
        reasons: list[str] = []
        rejector = ""
        for name, post_filter in profile.post_filters:
            answer = answers.get(name)
            if answer is None:
                answer = answers[name] = post_filter(cycle, diagnosis, profile.filters)
            result, status = answer
            if status is None:
                decision.post_filter = result
                return
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE or not status.is_rejection:
                best = result if status.is_rejection else None
                decision.post_filter, decision.post_filter_status = best, status.by(name)
                return
            if best is None or best.nominated is None or (result is not None and result.nominated is not None):
                best = result or best
            reasons += status.reasons
            rejector = rejector or name
        decision.post_filter = best
        if profile.post_filters:
            decision.post_filter_status = unschedulable(*reasons).by(rejector)

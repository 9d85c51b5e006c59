"""Runs pre-scores and scores on the nodes that fit, normalises, weighs and adds up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from kubesched.api.pod import Pod
from kubesched.framework.answers import AnswerCache, all_in_range
from kubesched.framework.bound_plugins import BoundPreScore, BoundScore
from kubesched.framework.cycle import Cycle, bound_call
from kubesched.framework.diagnosis import PassingRows
from kubesched.framework.equivalence import CachedScores, EquivalenceCache, ScoreGroup
from kubesched.framework.extender import ExtenderAnswers
from kubesched.framework.nodes import FeasibleNodes
from kubesched.framework.plugin import PreScorePlugin, ScorePlugin
from kubesched.framework.reads import Scope
from kubesched.framework.sampling import NodeSample
from kubesched.framework.status import MAX_NODE_SCORE, Code, Status, error
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64
from kubesched.state.facts import StateKey

_MAX_EXTENDER_SCORE = 10
_SHORT = 4096
_EXTENDER_SCALE = MAX_NODE_SCORE // _MAX_EXTENDER_SCORE

Column = Int64 | Int32
Scored = Column | int
"""Scores of some rows; a plain number where all are the same."""


class PluginScores(NamedTuple):
    """The scores of one plugin for the nodes that fit: before normalisation, and after it times the weight."""

    plugin: str
    raw: Scored
    weighted: Scored


class Best(NamedTuple):
    """The best total score, how many nodes have it, and which rows they are on."""

    score: int
    among: int
    is_best: Bool

    def row(self, drawn: int, nodes: FeasibleNodes) -> int:
        """The row of the drawn one of the best."""
        place = drawn if self.among == len(self.is_best) else _nth(self.is_best, drawn)
        return place if len(self.is_best) == len(nodes.feasible) else nodes.row(place)

    def rows(self, nodes: FeasibleNodes) -> list[int]:
        """The rows of all of the best."""
        places: list[int] = self.is_best.nonzero()[0].tolist()
        return places if len(self.is_best) == len(nodes.feasible) else [nodes.row(place) for place in places]


class Scores:
    """All scores of the nodes that fit.

    The total is in two parts: over all rows, from cached answers, and over the rows that fit, from plugins that were
    asked only about those. Mostly there is only the first, and no rows need to be picked.
    """

    __slots__ = ("_constant", "_of_all", "_of_feasible", "broken", "nodes", "of_passing", "parts", "skipped")

    def __init__(self, nodes: FeasibleNodes) -> None:
        self.nodes = nodes
        self.skipped: frozenset[str] = frozenset()
        self.broken: Status | None = None
        """The error of a plugin: then there is no total, and the attempt ends with this error."""
        self.parts: list[PluginScores] = []
        """The scores of each plugin; only for an explanation."""
        self._constant = 0
        self._of_all: Column | None = None
        self._of_feasible: Column | None = None
        self.of_passing: Column | None = None
        """The total over all rows with -1 where a row is not feasible, if EquivalenceCache has it."""

    def begin_with(self, totals: CachedScores, passing: PassingRows | None) -> None:
        """Begin with the cached sum of scores that are answered together; `passing` if just those rows fit."""
        self._of_all, self._constant = totals.total, totals.constant
        if passing is not None:
            self.of_passing = totals.of_passing(passing)

    def add_for_all(self, weighted: Scored) -> None:
        """Scores of all rows, or a plain number."""
        if isinstance(weighted, int):
            self._constant += weighted
        else:
            self.of_passing = None
            self._of_all = weighted if self._of_all is None else self._of_all + weighted

    def add_for_feasible(self, weighted: Column) -> None:
        self._of_feasible = weighted if self._of_feasible is None else self._of_feasible + weighted

    @property
    def total(self) -> Column:
        """The total of each node that fits."""
        return self._total_without_constant() + self._constant

    def _total_without_constant(self) -> Column:
        total = self._of_feasible
        if self._of_all is not None:
            of_all = self.nodes.take(self._of_all)
            total = of_all if total is None else total + of_all
        return np.zeros(len(self.nodes), dtype=np.int64) if total is None else total

    def best(self) -> Best:
        if self._of_feasible is None and self._of_all is not None:
            total = self._of_all if self.of_passing is None else self.of_passing
            if self.of_passing is None and not self.nodes.rows_are_all:
                total = np.where(self.nodes.feasible, total, -1)
        else:
            total = self._total_without_constant()
        best = np.maximum.reduce(total)  # what max() does, less a detour on every pod
        is_best = total == best
        return Best(int(best) + self._constant, int(np.count_nonzero(is_best)), is_best)


class ScorePlan:
    """The pre-scores to ask about pods of an equivalence class: all but those that skip the whole class."""

    __slots__ = ("_runner", "_without", "pre_scores", "skipped")

    def __init__(self, runner: ScoreRunner, skipped: tuple[str, ...]) -> None:
        self.skipped = skipped
        self.pre_scores = tuple(plugin for plugin in runner.pre_scores if plugin.name not in skipped)
        self._runner = runner
        self._without: dict[tuple[str, ...], tuple[frozenset[str], ScoreGroup]] = {}

    def without(self, more: tuple[str, ...]) -> tuple[frozenset[str], ScoreGroup]:
        """The plugins that skip a pod if these do, too, and the rest of the scores that are answered together."""
        group = self._without.get(more)
        if group is None:
            names = frozenset((*self.skipped, *more))
            group = self._without[more] = names, self._runner.group_without(names)
        return group


class ScoreRunner:
    """The pre-scores and scores of a profile on one cluster."""

    def __init__(
        self,
        state: ClusterState,
        pre_scores: Sequence[PreScorePlugin],
        scores: Sequence[tuple[ScorePlugin, int]],
        answers: AnswerCache,
        equivalence: EquivalenceCache,
    ) -> None:
        self.state = state
        self.pre_scores = tuple(
            BoundPreScore(plugin) for plugin in pre_scores if type(plugin).pre_score is not PreScorePlugin.pre_score
        )
        self.scores = tuple(BoundScore(plugin, weight, state, answers) for plugin, weight in scores)
        self._calls = {bound: bound_call(bound.name, "Score", partial(self._score, bound)) for bound in self.scores}
        self._answers = answers
        self._equivalence = equivalence
        most = sum(bound.weight for bound in self.scores) * MAX_NODE_SCORE
        self._needs_64_bits = most >= 2**31
        self._dtype = np.min_scalar_type(-1 - most)  # a smaller type means less memory to read for every pod
        self._together = (
            () if self._needs_64_bits else tuple(score for score in self.scores if _is_answered_together(score.plugin))
        )
        """Scores that look at one node at a time, which EquivalenceCache answers together for equivalent pods."""
        self._apart = tuple(score for score in self.scores if score not in self._together)
        self._plan_key = StateKey[ScorePlan]("scores")
        self._plans: dict[tuple[str, ...], ScorePlan] = {}
        self._groups: dict[frozenset[str], ScoreGroup] = {}

    def run(self, cycle: Cycle, sample: NodeSample, *, explain: bool = False) -> Scores:
        """Score the rows that fit. `explain` keeps the scores of each plugin."""
        result, watch = Scores(FeasibleNodes(self.state, sample.feasible, sample.feasible_count)), cycle.watch
        if watch is not None:
            watch.start()
        group = self._pre_score(cycle, result)
        if watch is not None:
            watch.lap("PreScore", result.broken)
        if group is None:
            return result
        scores = self.scores
        if not explain and self._together:
            totals = self._equivalence.totals(cycle, group)
            if totals is not None:
                result.begin_with(totals, sample.passing)
                scores = self._apart if not totals.uncached else (*totals.uncached, *self._apart)
        for bound in scores:
            if bound.name not in cycle.skipped_scores:
                self._calls[bound](cycle, result, explain)
        if watch is not None:
            watch.lap("Score", result.broken)
        if cycle.extender_answers is not None and not result.broken:
            self._add_extender_scores(cycle.extender_answers, cycle.pod, result, explain)
        return result

    def _add_extender_scores(self, answers: ExtenderAnswers, pod: Pod, result: Scores, explain: bool) -> None:
        names = [self.state.nodes.names[row] for row in np.flatnonzero(result.nodes.feasible).tolist()]
        for extender, scores in answers.scores(pod, names):
            weighted = _wrap(score * extender.weight * _EXTENDER_SCALE for score in scores)
            result.add_for_feasible(weighted)
            if explain:
                result.parts.append(PluginScores(extender.name, _wrap(scores), weighted))

    def _pre_score(self, cycle: Cycle, result: Scores) -> ScoreGroup | None:
        """Ask all pre-scores. The rest of the scores that are answered together; None if a plugin broke."""
        kept_plan = cycle.shared_facts.find(self._plan_key)
        plan = kept_plan or self._plan(())
        skipped: list[str] = []
        skipped_for_class: list[str] = []
        for plugin in plan.pre_scores:
            status = plugin.pre_score(cycle, result.nodes)
            if status is None:
                continue
            if status.code is not Code.SKIP:
                result.broken = error(f'running PreScore plugin "{plugin.name}": {status.message}')
                return None
            skipped.append(plugin.name)
            if kept_plan is None and plugin.skips_class(cycle.pod, cycle.facts):
                skipped_for_class.append(plugin.name)
        if kept_plan is None:
            cycle.shared_facts.keep(self._plan_key, self._plan(tuple(skipped_for_class)))
        cycle.skipped_scores, group = plan.without(tuple(skipped))
        result.skipped = cycle.skipped_scores
        return group

    def group_without(self, skipped: frozenset[str]) -> ScoreGroup:
        """The scores answered together that are not skipped: one object for each set, a key of EquivalenceCache."""
        group = self._groups.get(skipped)
        if group is None:
            scores = tuple(score for score in self._together if score.name not in skipped)
            group = self._groups[skipped] = ScoreGroup(scores, self._dtype)
        return group

    def _plan(self, skipped: tuple[str, ...]) -> ScorePlan:
        plan = self._plans.get(skipped)
        if plan is None:
            plan = self._plans[skipped] = ScorePlan(self, skipped)
        return plan

    def _score(self, bound: BoundScore, cycle: Cycle, result: Scores, explain: bool) -> None:
        nodes, plugin, weight = result.nodes, bound.plugin, bound.weight
        if not plugin.has_cached_scores:
            raw: Scored = plugin.score(cycle, nodes)
            for_all, in_range = False, False
        else:
            answer = self._answers.ask_score(plugin, cycle)
            raw, in_range, for_all = answer.scores, answer.in_range, True
            if in_range and not isinstance(raw, int):
                raw = raw.astype(np.int32)  # the cache has 8 bits
        # Normalising, checking the range and explaining are about the nodes that fit.
        if for_all and not isinstance(raw, int) and (plugin.normalizes or not in_range or explain):
            raw, for_all = nodes.take(raw), False
        scores: Scored = plugin.normalize(cycle, raw, nodes) if plugin.normalizes else raw
        if (plugin.normalizes or not in_range) and not all_in_range(scores):
            result.broken = result.broken or _out_of_range(plugin, scores)
        if self._needs_64_bits and not isinstance(scores, int):
            scores = scores.astype(np.int64)
        weighted = scores if weight == 1 else scores * weight
        if explain:
            result.parts.append(PluginScores(plugin.name, raw, weighted))
        if for_all or isinstance(weighted, int):
            result.add_for_all(weighted)
        else:
            result.add_for_feasible(weighted)


def _nth(rows: Bool, n: int) -> int:
    """The row that is set after `n` others: counting halves is ten times as fast as listing all of a long column."""
    start, end = 0, len(rows)
    while end - start > _SHORT:
        middle = (start + end) // 2
        before = int(np.count_nonzero(rows[start:middle]))
        start, end, n = (start, middle, n) if n < before else (middle, end, n - before)
    return start + int(rows[start:end].nonzero()[0][n])


def _is_answered_together(plugin: ScorePlugin) -> bool:
    if not plugin.score_reads.is_narrow:
        return False
    if plugin.score_reads.cluster is Scope.NODE_OBJECT:
        return plugin.scores_columns
    return plugin.scores_both_ways and not plugin.normalizes


def _out_of_range(plugin: ScorePlugin, scores: Scored) -> Status:
    worst = scores if isinstance(scores, int) else int(scores[(scores < 0) | (scores > MAX_NODE_SCORE)][0])
    return error(
        f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an invalid score {worst}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    )


def _wrap(numbers: Iterable[int]) -> Int64:
    """The numbers as 64 bits: larger ones wrap around as in Go."""
    return np.array([number & 2**64 - 1 for number in numbers], dtype=np.uint64).view(np.int64)

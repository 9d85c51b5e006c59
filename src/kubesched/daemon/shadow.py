"""Shadow mode: beside another scheduler, decide for every pod it binds, bind nothing, and say where they differ."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.shadow_groups import GroupJudge, InGroup
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError, ExtenderAnswers, Question
from kubesched.scheduler.attempt.extender_turns import answer
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.scheduler import Scheduler
from kubesched.state.columns import Bool

Judgement = Literal["same", "tie", "lower", "rejected", "no-node", "error"]
"""same node · another of the equally good ones · a node that scores lower here · one that is rejected here ·
no node fits here · no decision could be made"""

_REMEMBERED = 500


log = Log(__name__)


class ShadowComparison(NamedTuple):
    """One pod that was bound, and what would have become of it here."""

    at: float
    pod: str
    judgement: Judgement
    theirs: str
    ours: str
    why: str

    @property
    def agrees(self) -> bool:
        return self.judgement in ("same", "tie")


class Shadow(SchedulerListener):
    """Judges a binding just before the cache knows of it; with extenders, as soon as they have answered."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], float],
        on_comparison: Callable[[ShadowComparison], None] = lambda comparison: None,
        groups: GroupJudge | None = None,
    ) -> None:
        """With `groups`, pods of a group are judged in the light of it."""
        self._engine = engine
        self._groups = groups
        self._clock = clock
        self._on_comparison = on_comparison
        self._is_stopped = False
        self._judging: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()
        self.differing: deque[ShadowComparison] = deque(maxlen=_REMEMBERED)
        """The latest pods on which the two did not agree."""

    def handling(self, change: Change[KubeObject]) -> None:
        match change:
            case Change(Pod() as old, Pod() as new) if new.spec.node_name and not old.spec.node_name:
                self._judge(old, new.spec.node_name)
            case Change(PodGroup() as old, None) if self._groups is not None:
                self._groups.forget(old)

    def to_plain(self) -> dict[str, Any]:
        """For /debug/shadow."""
        return {"counts": dict(self.counts), "differing": [comparison._asdict() for comparison in self.differing]}

    async def stop(self) -> None:
        """Judge no more."""
        self._is_stopped = True
        for task in self._judging:
            task.cancel()
        await asyncio.gather(*self._judging, return_exceptions=True)

    def _judge(self, pod: Pod, theirs: str) -> None:
        if self._is_stopped or not self._engine.knows(pod.spec.scheduler_name):
            return
        answers = self._engine.answers_for(pod)
        group = self._groups.judged(pod, theirs) if self._groups is not None else InGroup()
        if group.judgement:
            self._note(pod, group.judgement, theirs, group.ours, group.why)
            return
        try:
            self._compare(pod, theirs, answers, group.within)
        except AnswersMissingError as missing:
            assert answers is not None
            asked = self._judge_with_extenders(pod, theirs, answers, missing.questions, group.within)
            task = asyncio.create_task(asked)
            self._judging.add(task)
            task.add_done_callback(self._judging.discard)

    async def _judge_with_extenders(
        self,
        pod: Pod,
        theirs: str,
        answers: ExtenderAnswers,
        questions: Sequence[Question[Any, Any]],
        within: Bool | None,
    ) -> None:
        """By the time extenders have answered the pod is on its node: it is taken off for as long as we decide."""
        state = self._engine.state
        while questions:
            await answer(questions)
            placed, questions = state.placed(pod), ()
            if placed is not None:
                state.delete(placed.pod)
            try:
                self._compare(pod, theirs, answers, within)
            except AnswersMissingError as missing:
                questions = missing.questions
            finally:
                if placed is not None:
                    state.apply(placed.pod)

    def _compare(self, pod: Pod, theirs: str, answers: ExtenderAnswers | None, within: Bool | None) -> None:
        decision = self._engine.decide(pod, explain=True, extender_answers=answers, within=within)
        judgement, why = _judged(decision, theirs)
        self._note(pod, judgement, theirs, decision.node, why)

    def _note(self, pod: Pod, judgement: Judgement, theirs: str, ours: str, why: str) -> None:
        comparison = ShadowComparison(self._clock(), pod.key, judgement, theirs, ours, why)
        self.counts[judgement] += 1
        if not comparison.agrees:
            self.differing.append(comparison)
        self._on_comparison(comparison)


def shadow_of(
    scheduler: Scheduler, *, clock: Callable[[], float], on_comparison: Callable[[ShadowComparison], None]
) -> Shadow:
    """A shadow that sees what a scheduler sees, to be one of its listeners."""
    engine, groups = scheduler.engine, None
    if engine.state.features.pod_groups:
        groups = GroupJudge(engine, scheduler.profiles, scheduler.pods.get)
    return Shadow(engine, clock=clock, on_comparison=on_comparison, groups=groups)


def log_and_count(registry: MetricsRegistry) -> Callable[[ShadowComparison], None]:
    """What a live shadow does with a comparison."""
    judgements = registry.family("kubesched_shadow_decisions_total")

    def note(comparison: ShadowComparison) -> None:
        judgements.child(comparison.judgement).inc()
        said: dict[str, Any] = {"theirs": comparison.theirs, "ours": comparison.ours, "judgement": comparison.judgement}
        if comparison.agrees:
            log.info("Shadow agrees", v=3, pod=comparison.pod, **said)
        else:
            log.info("Shadow differs", pod=comparison.pod, **said, why=comparison.why)

    return note


def _judged(decision: Decision, theirs: str) -> tuple[Judgement, str]:
    if decision.outcome is Outcome.ERROR:
        return "error", decision.message
    if decision.node == theirs:
        return "same", ""
    rejection = _rejection(decision, theirs)
    if decision.outcome is not Outcome.SCHEDULED:
        return "no-node", rejection or decision.message
    if rejection:
        return "rejected", rejection
    return _compared_by_score(decision, theirs)


def _rejection(decision: Decision, node: str) -> str:
    """Why the node would not have been taken here; nothing if it fits."""
    cycle, outcome = decision.cycle, decision.trace.filter_outcome
    row = cycle.state.nodes.row_of.get(node)
    if row is None or not cycle.state.nodes.live[row]:
        return "the node is not known here"
    if outcome is None:
        rejected = decision.trace.pre_filter.rejected if decision.trace.pre_filter is not None else None
        return "" if rejected is None else f"{rejected.plugin}: {rejected.message}"
    status = outcome.status_of(row)
    if status is not None:
        return f"{status.plugin}: {status.message}"
    return "" if outcome.considered[row] else "left out by a pre-filter"


def _compared_by_score(decision: Decision, theirs: str) -> tuple[Judgement, str]:
    scores, cycle = decision.trace.scores, decision.cycle
    if decision.pod.status.nominated_node_name == decision.node or scores is None or scores.broken:
        return "lower", f"the pod had been nominated to {decision.node}"
    names = cycle.state.nodes.names
    place = {names[row]: i for i, row in enumerate(scores.nodes.row_ids.tolist())}
    mine, other = place[decision.node], place[theirs]
    total = scores.total
    if int(total[mine]) == int(total[other]):
        return "tie", ""
    parts = []
    for part in scores.parts:
        if isinstance(part.weighted, int):
            continue
        difference = int(part.weighted[mine]) - int(part.weighted[other])
        if difference:
            parts.append(f"{part.plugin} {difference:+d}")
    return "lower", f"{decision.node} scores {int(total[mine])}, {theirs} {int(total[other])}: {', '.join(parts)}"

"""Shadow mode: beside another scheduler, decide for every pod it binds, bind nothing, and say where they differ."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.shadow_groups import GroupJudge, InGroup
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.decision_view import DecisionView, score_at
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError, ExtenderAnswers, ExtenderQuestion
from kubesched.scheduler.attempt.waiting_attempts import answer
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.scheduler import Scheduler
from kubesched.state.columns import Bool

Judgement = Literal["same", "tie", "lower", "rejected", "no-node", "error"]
"""same node · another of the equally good ones · a node that scores lower here · one that is rejected here ·
no node fits here · no decision could be made"""

AGREEING: tuple[Judgement, ...] = ("same", "tie")

_REMEMBERED = 500
SPAN = 10.0
"""Seconds for which judgements are counted together."""
_SPANS = 2_160
"""The most spans that are remembered: six hours in which something was bound all the time."""
OTHER_CAUSES = "other causes"
_LONGEST_MESSAGE = 1_000
"""Characters of the other scheduler's message that are kept."""


log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is decided of a node here: why it is rejected, or the score that each plugin gives it."""

    node: str
    rejection: str = ""
    total: int | None = None
    parts: tuple[tuple[str, int], ...] = ()
    """Weighted scores by plugin; none if the node was not scored."""


@dataclass(frozen=True, slots=True)
class ShadowComparison:
    """One pod that the other scheduler bound, and what kubesched would have done with it."""

    at: float
    pod: str
    judgement: Judgement
    theirs: str
    ours: str
    why: str
    cause: str = ""
    """The difference in a few words, which are equal for pods that differ for the same reason."""
    their_node: Standing | None = None
    our_node: Standing | None = None
    """The two nodes; `our_node` is missing where no node fits, and both where the schedulers agree."""
    nodes: int = 0
    fitting: int = 0
    message: str = ""
    """Why no node fits here."""
    said: str = ""
    """The message of the pod's condition, which the other scheduler wrote while the pod waited."""
    plugin: str = ""
    """The plugin whose rejection or score makes the difference; empty if there is none, or none can be named."""
    workload: str = ""
    """`namespace/kind/name` of the workload that made the pod; the pod's key if none did."""

    @property
    def agrees(self) -> bool:
        return self.judgement in AGREEING


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
        """With `groups`, a pod of a group is judged with its group."""
        self._engine = engine
        self._groups = groups
        self.now = clock
        self._on_comparison = on_comparison
        self._is_stopped = False
        self._judging: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()
        self.differing: deque[ShadowComparison] = deque(maxlen=_REMEMBERED)
        """The latest pods on which the two schedulers did not agree."""
        self.causes: Counter[tuple[Judgement, str]] = Counter()
        """How many differences there were of each cause."""
        self.spans: deque[tuple[float, Counter[Judgement]]] = deque(maxlen=_SPANS)
        """Judgements over time, by the beginning of each span in which there were any."""

    def handling(self, change: Change[KubeObject]) -> None:
        match change:
            case Change(Pod() as old, Pod() as new) if new.spec.node_name and not old.spec.node_name:
                self._judge(old, new.spec.node_name)
            case Change(PodGroup() as old, None) if self._groups is not None:
                self._groups.forget(old)

    def to_plain(self) -> dict[str, Any]:
        """For /debug/shadow."""
        shown = ("at", "pod", "judgement", "theirs", "ours", "why")
        differing = [{name: getattr(comparison, name) for name in shown} for comparison in self.differing]
        return {"counts": dict(self.counts), "differing": differing}

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
        group = self._groups.judge(pod, theirs) if self._groups is not None else InGroup()
        if group.judgement:
            self._note(self._of_group(pod, theirs, group))
            return
        try:
            self._compare(pod, theirs, answers, group.within)
        except AnswersMissingError as missing:
            assert answers is not None
            judging = self._judge_with_extenders(pod, theirs, answers, missing.questions, group.within)
            task = asyncio.create_task(judging)
            self._judging.add(task)
            task.add_done_callback(self._judging.discard)

    async def _judge_with_extenders(
        self,
        pod: Pod,
        theirs: str,
        answers: ExtenderAnswers,
        questions: Sequence[ExtenderQuestion[Any, Any]],
        within: Bool | None,
    ) -> None:
        """When extenders have answered, the pod is on its node: it is taken off while the engine decides."""
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
        decision = self._engine.decide(pod, explain=True, extender_answers=answers, candidate_rows=within)
        self._note(compare(decision, theirs, self.now()))

    def _note(self, comparison: ShadowComparison) -> None:
        self._count(comparison)
        self._on_comparison(comparison)

    def _of_group(self, pod: Pod, theirs: str, group: InGroup) -> ShadowComparison:
        """The comparison for a pod whose group decides the judgement: nodes were not scored for it alone."""
        assert group.judgement
        return ShadowComparison(
            self.now(),
            pod.key,
            group.judgement,
            theirs,
            group.ours,
            group.why,
            cause="the pod's group is placed otherwise",
            their_node=Standing(theirs, group.why),
            our_node=Standing(group.ours) if group.ours else None,
            nodes=self._engine.state.nodes.live_count,
            message="" if group.ours else group.why,
            said=_condition_message(pod),
            workload=_workload_of(pod),
        )

    def _count(self, comparison: ShadowComparison) -> None:
        judgement = comparison.judgement
        self.counts[judgement] += 1
        begin = comparison.at - comparison.at % SPAN
        if not self.spans or self.spans[-1][0] != begin:
            self.spans.append((begin, Counter()))
        self.spans[-1][1][judgement] += 1
        if comparison.agrees:
            return
        self.differing.append(comparison)
        cause = judgement, comparison.cause
        if cause not in self.causes and len(self.causes) >= _REMEMBERED:
            cause = judgement, OTHER_CAUSES
        self.causes[cause] += 1


def shadow_of(
    scheduler: Scheduler, *, clock: Callable[[], float], on_comparison: Callable[[ShadowComparison], None]
) -> Shadow:
    """A shadow beside a scheduler, to be added to its listeners."""
    engine, groups = scheduler.engine, None
    if engine.state.features.pod_groups:
        groups = GroupJudge(engine, scheduler.profiles, scheduler.pods.get)
    return Shadow(engine, clock=clock, on_comparison=on_comparison, groups=groups)


def log_and_count(registry: MetricsRegistry) -> Callable[[ShadowComparison], None]:
    """A callback that logs and counts comparisons."""
    judgements = registry.family("kubesched_shadow_decisions_total")

    def note(comparison: ShadowComparison) -> None:
        judgements.child(comparison.judgement).inc()
        sides: dict[str, Any] = {"theirs": comparison.theirs, "ours": comparison.ours}
        sides["judgement"] = comparison.judgement
        if comparison.agrees:
            log.info("Shadow agrees", v=3, pod=comparison.pod, **sides)
        else:
            log.info("Shadow differs", pod=comparison.pod, **sides, why=comparison.why)

    return note


def compare(decision: Decision, theirs: str, at: float) -> ShadowComparison:
    """Compare the node where the other scheduler bound a pod with the decision that was made for it here."""
    view = DecisionView(decision)
    judgement, why, cause, plugin = _judge(view, theirs)
    pod, ours, workload = decision.pod.key, decision.node, _workload_of(decision.pod)
    if judgement in AGREEING:
        return ShadowComparison(at, pod, judgement, theirs, ours, why, workload=workload)
    return ShadowComparison(
        at,
        pod,
        judgement,
        theirs,
        ours,
        why,
        cause,
        their_node=_standing(view, theirs),
        our_node=_standing(view, ours) if ours else None,
        nodes=view.state.nodes.live_count,
        fitting=view.fitting,
        message="" if ours else decision.message,
        said=_condition_message(decision.pod),
        plugin=plugin,
        workload=workload,
    )


def _judge(view: DecisionView, theirs: str) -> tuple[Judgement, str, str, str]:
    """The judgement, why, the cause, and the plugin that makes the difference, as `ShadowComparison` has them."""
    decision = view.decision
    if decision.outcome is Outcome.ERROR:
        plugin = decision.status.plugin if decision.status is not None else ""
        return "error", decision.message, plugin, plugin
    if decision.node == theirs:
        return "same", "", "", ""
    rejection, plugin = _rejection(view, theirs)
    if decision.outcome is not Outcome.SCHEDULED:
        return "no-node", rejection or decision.message, rejection, plugin
    if rejection:
        return "rejected", rejection, rejection, plugin
    return _compare_scores(view, theirs)


def _rejection(view: DecisionView, node: str) -> tuple[str, str]:
    """Why the node is rejected here, and by which plugin; empty if it fits."""
    row = view.row_of(node)
    if row is None:
        return "the node is not known here", ""
    status = view.rejection(row)
    return ("", "") if status is None else (f"{status.plugin}: {status.message}", status.plugin)


def _compare_scores(view: DecisionView, theirs: str) -> tuple[Judgement, str, str, str]:
    ours = view.decision.node
    our_node, their_node = _standing(view, ours), _standing(view, theirs)
    if view.is_nominated or our_node.total is None or their_node.total is None:
        return "lower", f"the pod had been nominated to {ours}", "the pod had been nominated elsewhere", ""
    if our_node.total == their_node.total:
        return "tie", "", "", ""
    differences = [(plugin, a - b) for (plugin, a), (_, b) in zip(our_node.parts, their_node.parts) if a != b]
    shown = ", ".join(f"{plugin} {difference:+d}" for plugin, difference in differences)
    plugin = max(differences, key=lambda difference: difference[1])[0]
    why = f"{ours} scores {our_node.total}, {theirs} {their_node.total}: {shown}"
    return "lower", why, f"{plugin} prefers another node", plugin


def _standing(view: DecisionView, node: str) -> Standing:
    (rejection, _), place = _rejection(view, node), view.place_of(node)
    if view.scores is None or rejection or place is None:
        return Standing(node, rejection)
    parts = tuple((part.plugin, score_at(part.weighted, place)) for part in view.scores.parts)
    return Standing(node, "", int(view.scores.total[place]), parts)


def _condition_message(pod: Pod) -> str:
    """What the other scheduler wrote last about a pod that it could not place."""
    messages = (
        condition.message
        for condition in pod.status.conditions
        if condition.type == "PodScheduled" and condition.status == "False"
    )
    return next(messages, "")[:_LONGEST_MESSAGE]


_TEMPLATE_HASH = "pod-template-hash"
"""The label by which a Deployment tells the pods of its ReplicaSets apart."""


def _workload_of(pod: Pod) -> str:
    owner = pod.metadata.controller
    if owner is None:
        return pod.key
    kind, name, rollout = owner.kind, owner.name, pod.metadata.labels.get(_TEMPLATE_HASH, "")
    if kind == "ReplicaSet" and rollout and name.endswith(f"-{rollout}"):
        kind, name = "Deployment", name.removesuffix(f"-{rollout}")
    return f"{pod.namespace}/{kind.lower()}/{name}"

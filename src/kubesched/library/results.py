"""Answers for programs and notebooks: each as a document, as tables of plain rows, as a frame, and as its page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from kubesched.api.errors import UserError
from kubesched.ask import html as pages
from kubesched.ask.answers import Skipped, Summary, answer
from kubesched.ask.explain import ExplainedPod, ExplanationFindings
from kubesched.ask.explain.explanation import Explanation, NodeScore, NodeVerdict
from kubesched.ask.output import document
from kubesched.ask.pending import PendingPods
from kubesched.ask.releases.comparison import ReleaseComparison
from kubesched.ask.remedies import Remedies
from kubesched.ask.what_if.answer import WhatIfAnswer
from kubesched.planning.page import plan_page
from kubesched.planning.plan import Plan, PlanOutcome
from kubesched.planning.script import script_of
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import CapacityAnswer, PlacementReport
from kubesched.simulate.report import Comparison, SimulationReport, figures_of

A = TypeVar("A")
Row = dict[str, Any]
FRAME_LIBRARIES = ("pandas", "polars")
_HEIGHT = 420
"""Pixels of an answer in a notebook; what is longer can be scrolled."""


class Result:
    """The base of all answers: as a dict, tables, a frame, or a page."""

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with `-o json`; docs/schemas describes it."""
        raise NotImplementedError

    def tables(self) -> dict[str, list[Row]]:
        """Rows of plain values by the name of the table, the most important table first."""
        return {name: [dict(zip(COLUMNS[name], row)) for row in rows] for name, rows in self._rows().items()}

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        """The rows of `tables` as tuples, in the order of COLUMNS."""
        raise NotImplementedError

    def page(self) -> str:
        """The whole page of HTML that the command prints with `-o html`."""
        raise NotImplementedError

    def to_frame(self, table: str = "", *, library: str = "") -> Any:
        """A table as a DataFrame of pandas, or of polars where that alone is installed; the first if none is named.

        UserError if there is no such table, or neither library.
        """
        tables = self.tables()
        table = table or next(iter(tables))
        if table not in tables:
            raise UserError(f"there is no table {table!r}; there are {', '.join(tables)}")
        rows, columns = tables[table], COLUMNS[table]
        chosen = library or next(filter(find_spec, FRAME_LIBRARIES), "")
        if chosen not in FRAME_LIBRARIES:
            raise UserError(f"a frame needs {' or '.join(FRAME_LIBRARIES)}: {chosen or 'neither is installed'}")
        try:
            frames: Any = import_module(chosen)
        except ModuleNotFoundError:
            raise UserError(f"{chosen} is not installed") from None
        return frames.DataFrame({column: [row[column] for row in rows] for column in columns})

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its style stays there, and nothing of it reaches the notebook."""
        style = f"width:100%;height:{_HEIGHT}px;border:0"
        source = html.escape(self.page(), quote=True)
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{source}"></iframe>'


class AnswerResult(Result, Generic[A]):
    """A result that is made of one answer about the objects of a cluster."""

    def __init__(self, answer: A) -> None:
        self.answer = answer

    def to_dict(self) -> dict[str, Any]:
        return answer(self.answer, Skipped({}))


COLUMNS = {
    "nodes": ["node", "fits", "plugin", "reason", "score"],
    "pending": ["pod", "why", "message", "node"],
    "pods": ["pod", "priority", "node", "score", "feasible", "message"],
    "capacity": ["node", "copies"],
    "changes": ["pod", "change", "from_node", "to_node", "reason"],
    "releases": ["pod", "change", "has_node", "before", "after", "causes"],
    "steps": ["wave", "pod", "step", "from_node", "to_node"],
    "nodes_planned": ["node", "fate", "type", "count", "price"],
    "stories": ["pod", "priority", "arrived", "placed", "finished", "evicted", "attempts", "node", "message"],
    "timeline": ["time", "running", "pending", "placed", "resource", "requested"],
    "policies": ["policy", "figure", "value"],
    "differences": ["pod", "policy", "node"],
}
"""The columns of each table, which has them even if it has no rows."""


class ExplanationResult(Result):
    """Why a pod goes where it goes, or nowhere, and what would help."""

    def __init__(self, explained: ExplainedPod) -> None:
        self.explanation: Explanation = explained.explanation
        self.findings: ExplanationFindings = explained.findings

    @property
    def node(self) -> str:
        """Where the pod goes; empty if it goes nowhere."""
        return self.explanation.node

    @property
    def outcome(self) -> str:
        return self.explanation.outcome

    @property
    def message(self) -> str:
        """What kube-scheduler would write into the pod's condition."""
        return self.explanation.message

    @property
    def cause(self) -> str:
        """Why it is not scheduled, in one line; empty if it is."""
        return self.findings.cause

    @property
    def verdicts(self) -> tuple[NodeVerdict, ...]:
        return self.explanation.verdicts

    @property
    def scores(self) -> tuple[NodeScore, ...]:
        return self.explanation.scores

    @property
    def remedies(self) -> Remedies | None:
        """What would help; None for a pod that finds a node."""
        return self.findings.remedies

    def to_dict(self) -> dict[str, Any]:
        return answer(self.explanation, self.findings, Skipped({}))

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        totals = {score.node: score.total for score in self.scores}
        rows = []
        for verdict in self.verdicts:
            refusal = (verdict.refusal.plugin, verdict.refusal.text) if verdict.refusal else ("", "")
            rows.append((verdict.node, verdict.fits, *refusal, totals.get(verdict.node)))
        return {"nodes": rows}

    def page(self) -> str:
        return pages.explanation_page([ExplainedPod(self.explanation, self.findings)])


class PendingResult(AnswerResult[PendingPods]):
    """All pods that have no node, in groups that wait for the same."""

    @property
    def causes(self) -> dict[str, int]:
        """How many pods wait for what, the most first."""
        return {group.why: len(group.pods) for group in self.answer.groups}

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        waiting = [(pod, group.why, group.message, "") for group in self.answer.groups for pod in group.pods]
        return {"pending": [*waiting, *((placed.pod, "", "", placed.node) for placed in self.answer.placed)]}

    def page(self) -> str:
        return pages.pending_page(self.answer)


class PlacementResult(AnswerResult[PlacementReport]):
    """Where pods go, one after another, without preemption."""

    @property
    def nodes(self) -> dict[str, str]:
        """The node of each pod that found one."""
        return {placed.pod: placed.node for placed in self.answer.placed}

    @property
    def waiting(self) -> dict[str, str]:
        """Why each of the others waits, in the words of its condition."""
        return {unplaced.pod: unplaced.message for unplaced in self.answer.unplaced}

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        placed = [(pod.pod, pod.priority, pod.node, pod.score, pod.feasible, "") for pod in self.answer.placed]
        unplaced = [(pod.pod, pod.priority, "", None, 0, pod.message) for pod in self.answer.unplaced]
        return {"pods": [*placed, *unplaced]}

    def page(self) -> str:
        return pages.placement_page(self.answer)


class CapacityResult(AnswerResult[CapacityAnswer]):
    """How many more of a pod fit, and what stops the next one."""

    @property
    def fit(self) -> int:
        return self.answer.fit

    @property
    def stopped_by(self) -> str:
        """What keeps the next one out; empty if all that were asked for fit."""
        return self.answer.stopped_by

    def to_dict(self) -> dict[str, Any]:
        return answer(self.answer)

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        return {"capacity": self.answer.by_node.items()}

    def page(self) -> str:
        return pages.capacity_page(self.answer)


class WhatIfResult(AnswerResult[WhatIfAnswer]):
    """The difference that changes to a cluster make."""

    @property
    def broken_budgets(self) -> tuple[str, ...]:
        return self.answer.broken_budgets

    @property
    def is_nothing(self) -> bool:
        """Whether no pod is treated otherwise."""
        return self.answer.is_nothing

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        answer = self.answer
        rows: list[tuple[Any, ...]] = []
        for change, moves in (("moved", answer.moved), ("placed", answer.placed)):
            rows += [(move.pod, change, move.from_node, move.to_node, "") for move in moves]
        rows += [(pod.pod, "waits", pod.from_node, "", pod.reason) for pod in answer.waiting]
        return {"changes": [*rows, *((pod, "gone", "", "", "") for pod in answer.gone)]}

    def page(self) -> str:
        return pages.what_if_page(self.answer)


class ReleaseComparisonResult(AnswerResult[ReleaseComparison]):
    """What an upgrade to another release of Kubernetes would change."""

    @property
    def is_nothing(self) -> bool:
        """Whether no pod is treated otherwise."""
        return not self.answer.groups

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        rows: list[tuple[Any, ...]] = []
        for group in self.answer.groups:
            causes = ", ".join(cause.name for cause in group.causes)
            for change in group.changes:
                cells = (change.kind.value, change.is_placed, change.before.words, change.after.words, causes)
                rows += [(pod, *cells) for pod in change.pods]
        return {"releases": rows}

    def page(self) -> str:
        return pages.releases_page(self.answer)


class PlanResult(Result):
    """What to do, in waves, and how far from the best possible it is."""

    def __init__(self, plan: Plan, cluster: ClusterModel) -> None:
        self.plan = plan
        self._cluster = cluster

    @property
    def reaches_goal(self) -> bool:
        return self.plan.outcome is PlanOutcome.FOUND

    @property
    def reason(self) -> str:
        """Why it is impossible, partial or unchanged; else empty."""
        return self.plan.reason

    def to_dict(self) -> dict[str, Any]:
        return document("Plan", self.plan)

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        plan, steps = self.plan, list[tuple[Any, ...]]()
        steps += [(step.wave, step.pod, "moved", step.from_node, step.to_node) for step in plan.moves]
        steps += [(step.wave, step.pod, "placed", "", step.node) for step in plan.placements]
        steps += [(None, pod, "waits", "", "") for pod in plan.waiting]
        nodes = [(step.name, step.fate.value, step.type, step.count, step.price) for step in plan.nodes]
        return {"steps": steps, "nodes_planned": nodes}

    def page(self) -> str:
        return plan_page(self.plan, self._cluster)

    def script(self) -> str:
        """For kubectl: what `-o sh` of the command prints."""
        return script_of(self.plan, self._cluster)


class SimulationResult(Result):
    """What became of all pods as time passed."""

    def __init__(self, report: SimulationReport, configuration: str = "default") -> None:
        self.report = report
        self.figures = figures_of(report)
        self._configuration = configuration

    def to_dict(self) -> dict[str, Any]:
        return answer(self.report, Summary(self.figures), Skipped({}))

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        stories = [tuple(getattr(story, name) for name in COLUMNS["stories"]) for story in self.report.pods]
        timeline = [
            (moment.time, moment.running, moment.pending, moment.placed, resource, share)
            for moment in self.report.timeline
            for resource, share in moment.resources.items()
        ]
        return {"stories": stories, "timeline": timeline}

    def page(self) -> str:
        return pages.simulation_page(self.report, configuration=self._configuration)


class ComparisonResult(AnswerResult[Comparison]):
    """The same cluster under several configurations of the scheduler."""

    def __init__(self, comparison: Comparison, reports: Sequence[SimulationReport], seed: int) -> None:
        super().__init__(comparison)
        self.simulations = {name: SimulationResult(report, name) for name, report in zip(comparison.policies, reports)}
        self._seed = seed

    def _rows(self) -> dict[str, Iterable[tuple[Any, ...]]]:
        comparison, figures = self.answer, list[tuple[Any, ...]]()
        for policy, results in zip(comparison.policies, comparison.figures):
            plain = {name: getattr(results, name) for name in results.__slots__ if name not in ("mean", "spread")}
            plain |= {f"{resource} requested": share for resource, share in results.mean.items()}
            plain |= {f"{resource} deviation": share for resource, share in results.spread.items()}
            figures += [(policy, name, float(value)) for name, value in plain.items()]
        pods = [(pod.pod, *place) for pod in comparison.differences for place in zip(comparison.policies, pod.nodes)]
        return {"policies": figures, "differences": pods}

    def page(self) -> str:
        return pages.comparison_page(self.answer, seed=self._seed)

"""One decision as the page shows it: the funnel of nodes, nearest misses, scores, and the victims of preemption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework.decision import Outcome
from kubesched.framework.decision_view import DecisionView, FilterStep, NearMiss, score_at
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.scores import Scores
from kubesched.framework.status import Status
from kubesched.simulate.preemption import ProposedEviction, chosen_eviction

MOST_MISSES = 8
_SCORED = 12


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node that fits, with what each plugin adds to its total."""

    node: str
    total: int
    parts: tuple[int, ...]
    raw: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best nodes, the chosen one first. `parts` of nodes are in the order of `plugins`."""

    plugins: tuple[tuple[str, int], ...]
    """Names and weights."""
    nodes: tuple[ScoredNode, ...]
    scored: int
    ties: int
    """How many have the best score; one of them is drawn."""


@dataclass(frozen=True, slots=True)
class ScoreLead:
    """Why the winner won: how far it is ahead of the best other node, and by the scores of which plugins."""

    over: str
    points: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What the scheduler would do with a pod now, and why."""

    outcome: str
    node: str
    message: str
    nodes: int
    fitting: int
    nominated: bool
    """Whether room was kept for the pod there before, so that scores did not matter."""
    gate: str | None
    """What keeps the pod from being looked at; the rest says what would happen without it."""
    funnel: tuple[FilterStep, ...]
    silent: int
    """How many filters let every node pass."""
    misses: tuple[NearMiss, ...]
    """Only of a pod that fits nowhere."""
    ranking: Ranking | None
    lead: ScoreLead | None
    eviction: ProposedEviction | None


def page_verdict(view: DecisionView, gate: Status | None = None) -> PodVerdict:
    """The verdict that a decision amounts to."""
    decision, funnel = view.decision, tuple(view.funnel())
    ranking = _ranking(view, view.scores) if view.scores is not None else None
    filters = len(view.profile.at("filter", FilterPlugin))
    return PodVerdict(
        outcome=Outcome.GATED.value if gate is not None else decision.outcome.value,
        node=decision.node,
        message=decision.message,
        nodes=int(np.count_nonzero(view.live)),
        fitting=view.fitting,
        nominated=view.is_nominated,
        gate=None if gate is None else f"{gate.plugin}: {gate.message}",
        funnel=funnel,
        silent=max(filters - len({step.plugin for step in funnel}), 0),
        misses=() if decision.node else view.near_misses(MOST_MISSES),
        ranking=ranking,
        lead=None if ranking is None else _lead(ranking),
        eviction=chosen_eviction(decision, view.state),
    )


def _ranking(view: DecisionView, scores: Scores) -> Ranking:
    rows, total, chosen = scores.nodes.row_ids, scores.total, view.place_of(view.decision.node)
    # Of all if the pod was nominated, the chosen one comes first; of equals it does anyway.
    first = [] if chosen is None else [chosen]
    places = (first + [place for place in view.ranking(_SCORED) if place != chosen])[:_SCORED]
    nodes = tuple(
        ScoredNode(
            view.names[int(rows[place])],
            int(total[place]),
            tuple(score_at(part.weighted, place) for part in scores.parts),
            tuple(score_at(part.raw, place) for part in scores.parts),
        )
        for place in places
    )
    weights = view.profile.weights
    plugins = tuple((part.plugin, weights.get(part.plugin, 1)) for part in scores.parts)
    return Ranking(plugins, nodes, len(rows), max(view.decision.draw.among, 1))


def _lead(ranking: Ranking) -> ScoreLead | None:
    """None if there is no other node, or the chosen one is not ahead of it."""
    if len(ranking.nodes) < 2 or ranking.ties > 1:
        return None
    first, second = ranking.nodes[:2]
    if first.total <= second.total:
        return None
    parts = [(plugin, a - b) for (plugin, _), a, b in zip(ranking.plugins, first.parts, second.parts) if a != b]
    parts.sort(key=lambda part: -abs(part[1]))
    return ScoreLead(second.node, first.total - second.total, tuple(parts))

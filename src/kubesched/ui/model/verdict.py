"""One decision as the page shows it: the funnel of nodes, nearest misses, scores, why the winner won, whom preemption
would take. Read from the columns of the engine's trace, so that 5,000 nodes cost as little as 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.scores import Scored, Scores
from kubesched.framework.status import Status
from kubesched.simulate.preemption import ProposedEviction, chosen_eviction
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Rows
from kubesched.ui.model.amounts import spelled

_EXAMPLES = 3
_REASONS = 6
_MISSES = 8
_SCORED = 12


@dataclass(frozen=True, slots=True)
class Reason:
    """What a plugin has against some nodes."""

    text: str
    nodes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A plugin in the funnel: how many nodes came to it and how many it let pass."""

    plugin: str
    came: int
    passed: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Miss:
    """A node that nearly fits: who objects, and what it is short of."""

    node: str
    objections: tuple[tuple[str, str], ...]
    """Plugins and what they say."""
    missing: dict[str, str]


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
class Lead:
    """Why the winner won: how far it is ahead of the best other node, and by whose word."""

    over: str
    points: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
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
    funnel: tuple[Step, ...]
    silent: int
    """How many filters let every node pass."""
    misses: tuple[Miss, ...]
    ranking: Ranking | None
    lead: Lead | None
    eviction: ProposedEviction | None


def verdict_of(
    decision: Decision, state: ClusterState, profiles: Mapping[str, Profile], gate: Status | None = None
) -> Verdict:
    """Read a decision that was made with `explain`. The state must still be the one it was made on."""
    return _Reader(decision, state, profiles[decision.profile]).verdict(gate)


class _Reader:
    def __init__(self, decision: Decision, state: ClusterState, profile: Profile) -> None:
        self._decision = decision
        self._state = state
        self._names = state.nodes.names
        self._live: Bool = state.nodes.live[: state.nodes.size]
        self._profile = profile

    def verdict(self, gate: Status | None) -> Verdict:
        decision, trace = self._decision, self._decision.trace
        outcome, scores = trace.filter_outcome, trace.scores
        ranking = self._ranking(scores) if scores is not None and not scores.broken else None
        funnel = self._funnel(outcome)
        filters = len(self._profile.at("filter", FilterPlugin))
        return Verdict(
            outcome=Outcome.GATED.value if gate is not None else decision.outcome.value,
            node=decision.node,
            message=decision.message,
            nodes=int(np.count_nonzero(self._live)),
            fitting=0 if outcome is None else int(np.count_nonzero(outcome.feasible & self._live)),
            nominated=bool(decision.node) and decision.node == decision.pod.status.nominated_node_name,
            gate=None if gate is None else f"{gate.plugin}: {gate.message}",
            funnel=funnel,
            silent=max(filters - len({step.plugin for step in funnel}), 0),
            misses=() if outcome is None else self._misses(outcome),
            ranking=ranking,
            lead=None if ranking is None else _lead(ranking),
            eviction=chosen_eviction(decision, self._state),
        )

    # -- the funnel ---------------------------------------------------------------------------------------------------

    def _funnel(self, outcome: FilterOutcome | None) -> tuple[Step, ...]:
        left = int(np.count_nonzero(self._live))
        pre_filter = self._decision.trace.pre_filter
        if pre_filter is not None and pre_filter.rejected is not None:
            refused = pre_filter.rejected
            return (Step(refused.plugin, left, 0, (Reason(refused.message, left, ()),)),)
        if outcome is None:
            return ()
        steps: list[Step] = []

        def step(plugin: str, rejected: Bool, reasons: tuple[Reason, ...]) -> None:
            nonlocal left
            count = int(np.count_nonzero(rejected))
            if count:
                steps.append(Step(plugin, left, left - count, reasons))
                left -= count

        outside = self._live & ~outcome.considered
        if pre_filter is not None and outside.any():
            names = ", ".join(sorted(pre_filter.narrowed_by))
            step(names, outside, (self._reason(f"{names} leaves only some nodes to look at", outside),))
        kept = np.zeros(len(self._live), dtype=np.bool_)
        kept[list(outcome.overrides)] = True
        texts = Counter(status.message for status in outcome.overrides.values())
        step("nominated pods, extenders", kept, tuple(Reason(text, n, ()) for text, n in texts.most_common(_REASONS)))
        for rejections, ids, rejected in outcome.first_rejections:
            counts = np.bincount(ids[rejected], minlength=len(rejections.statuses))
            common = [int(i) for i in np.argsort(-counts, kind="stable")[:_REASONS] if counts[i]]
            said = ((rejections.status_of(i), rejected & (ids == i)) for i in common)
            step(rejections.plugin, rejected, tuple(self._reason(s.message, rows) for s, rows in said if s is not None))
        return tuple(steps)

    def _reason(self, text: str, rows: Bool) -> Reason:
        found = np.flatnonzero(rows)
        return Reason(text, len(found), tuple(self._names[row] for row in found[:_EXAMPLES].tolist()))

    # -- nearest misses -----------------------------------------------------------------------------------------------

    def _misses(self, outcome: FilterOutcome) -> tuple[Miss, ...]:
        """Nodes with fewest objections; among those, where least is missing."""
        refused = np.flatnonzero(self._live & outcome.considered & ~outcome.feasible)
        if not len(refused):
            return ()
        objections = np.zeros(len(refused), dtype=np.int64)
        for _, ids in (*outcome.for_nominated, *outcome.columns):
            objections += ids[refused] != 0
        order = np.lexsort((self._shortage(refused), objections))[:_MISSES]
        return tuple(self._miss(int(row), outcome) for row in refused[order])

    def _shortage(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The largest part of a request that is missing on each row."""
        table, requests = self._state.nodes, self._state.facts(self._decision.pod).requests
        worst = np.zeros(len(rows))
        for resource, wanted in enumerate(requests.tolist()):
            if wanted:
                free = table.allocatable[resource, rows] - table.requested[resource, rows]
                worst = np.maximum(worst, (wanted - free) / wanted)
        return worst

    def _miss(self, row: int, outcome: FilterOutcome) -> Miss:
        table, requests = self._state.nodes, self._state.facts(self._decision.pod).requests
        missing = {}
        for name, resource in table.resources.items():
            if resource < len(requests) and requests[resource]:
                free = int(table.allocatable[resource, row] - table.requested[resource, row])
                if requests[resource] > free:
                    missing[name] = spelled(name, int(requests[resource]) - free)
        status = outcome.status_of(row)
        said = ([status] if status is not None and outcome.is_overridden(row) else []) + outcome.rejections_of(row)
        return Miss(self._names[row], tuple((s.plugin, s.message) for s in said), missing)

    # -- scores -------------------------------------------------------------------------------------------------------

    def _ranking(self, scores: Scores) -> Ranking:
        rows, total = scores.nodes.row_ids, scores.total
        best = np.argsort(-total, kind="stable")[:_SCORED].tolist()
        chosen = np.flatnonzero(rows == self._state.nodes.row_of.get(self._decision.node, -1)).tolist()
        # Not for want of a better score: of equals, or of all if the pod was nominated, the chosen one comes first.
        order = (chosen + [i for i in best if i not in chosen])[:_SCORED]
        nodes = tuple(
            ScoredNode(
                self._names[int(rows[i])],
                int(total[i]),
                tuple(_at(part.weighted, i) for part in scores.parts),
                tuple(_at(part.raw, i) for part in scores.parts),
            )
            for i in order
        )
        weights = self._profile.weights
        plugins = tuple((part.plugin, weights.get(part.plugin, 1)) for part in scores.parts)
        return Ranking(plugins, nodes, len(rows), max(self._decision.draw.among, 1))


def _at(scores: Scored, i: int) -> int:
    return scores if isinstance(scores, int) else int(scores[i])


def _lead(ranking: Ranking) -> Lead | None:
    """None if there is no other node, or the chosen one is not ahead of it."""
    if len(ranking.nodes) < 2 or ranking.ties > 1:
        return None
    first, second = ranking.nodes[:2]
    if first.total <= second.total:
        return None
    parts = [(plugin, a - b) for (plugin, _), a, b in zip(ranking.plugins, first.parts, second.parts) if a != b]
    parts.sort(key=lambda part: -abs(part[1]))
    return Lead(second.node, first.total - second.total, tuple(parts))

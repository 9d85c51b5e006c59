"""What preemption would do for a pod that fits nowhere: whom it would evict, where else it might, where it cannot help.

Read from what the PostFilter plugin left behind; nothing is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest

from kubesched.framework.decision import Decision
from kubesched.plugins.default_preemption.candidates import Budgets, Candidate
from kubesched.plugins.default_preemption.dry_run import DryRun
from kubesched.plugins.default_preemption.plugin import NOT_HELPFUL, PreemptionDetails
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

MOST_OTHERS = 100
"""Of so many nodes it is told what making room there would take, besides the one that is chosen."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go, and the disruption budgets that guard it."""

    pod: str
    priority: int
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedEviction:
    """What it would take to make room on one node."""

    node: str
    victims: tuple[Victim, ...]
    budget_violations: int = 0


@dataclass(frozen=True, slots=True)
class NoHelp:
    """Nodes on which evicting others would change nothing, and why."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreemptionProposal:
    """The outcome of asking whether room can be made."""

    chosen: ProposedEviction | None = None
    others: tuple[ProposedEviction, ...] = ()
    """Further nodes where it could be done, the least costly first."""
    no_help: tuple[NoHelp, ...] = ()
    message: str = ""
    """Why nothing can be done, as the pod's condition tells it."""


def preemption_of(decision: Decision, state: ClusterState) -> PreemptionProposal | None:
    """All that the post-filters found; None if they were not asked."""
    result, status = decision.post_filter, decision.post_filter_status
    if result is None and status is None:
        return None
    chosen = chosen_eviction(decision, state)
    message = status.message if status is not None else ""
    details = result.details if result is not None else None
    if not isinstance(details, PreemptionDetails) or details.run is None:
        return PreemptionProposal(chosen, message=message)
    reader = _Reader(state)
    candidates = ((each.cost, state.nodes.names[each.row], each) for each in details.run.candidates())
    others = [candidate for _, _, candidate in nsmallest(MOST_OTHERS + 1, candidates, key=lambda found: found[:2])]
    return PreemptionProposal(
        chosen=chosen,
        others=tuple(reader.eviction(candidate) for candidate in others if candidate.row != details.best[0]),
        no_help=reader.no_help(details.run),
        message=message,
    )


def chosen_eviction(decision: Decision, state: ClusterState) -> ProposedEviction | None:
    """What preemption would do, if it can do anything."""
    result = decision.post_filter
    if result is None or not result.nominated:
        return None
    reader = _Reader(state)
    details = result.details
    if isinstance(details, PreemptionDetails) and details.run is not None:
        return reader.eviction(details.run.candidate(details.best[0]))
    # A plugin of the user's own names a node and victims, without further details.
    return ProposedEviction(result.nominated, reader.victims(result.victims))


class _Reader:
    """Turns rows and placed pods into names."""

    def __init__(self, state: ClusterState) -> None:
        self._names = state.nodes.names
        self._live = state.nodes.live
        self._size = state.nodes.size
        self._budgets = Budgets(state.objects)

    def eviction(self, candidate: Candidate) -> ProposedEviction:
        return ProposedEviction(self._names[candidate.row], self.victims(candidate.victims), candidate.violations)

    def victims(self, pods: Iterable[PlacedPod]) -> tuple[Victim, ...]:
        return tuple(
            Victim(placed.pod.key, placed.pod.priority, tuple(budget.name for budget in self._budgets.of(placed.facts)))
            for placed in pods
        )

    def no_help(self, run: DryRun) -> tuple[NoHelp, ...]:
        """Nodes that stay as they are, by reason: first those that were tried in vain."""
        nodes: dict[str, list[str]] = {}
        for status, rows in run.failures:
            nodes.setdefault(status.message, []).extend(self._names[row] for row in rows.tolist())
        tried = set(run.potential.tolist())
        untried = [self._names[row] for row in range(self._size) if self._live[row] and row not in tried]
        if untried:
            nodes.setdefault(NOT_HELPFUL, []).extend(untried)
        return tuple(NoHelp(reason, tuple(sorted(names))) for reason, names in nodes.items())

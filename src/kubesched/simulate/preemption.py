"""What preemption would do for a pod that fits nowhere: whom it would evict, where else it might, where it cannot help.

Read from what the PostFilter plugin left behind; nothing is evicted.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.decision import Decision
from kubesched.plugins.default_preemption.budgets import Budgets
from kubesched.plugins.default_preemption.candidates import Candidate
from kubesched.plugins.default_preemption.plugin import NOT_HELPFUL, PreemptionDetails
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go, and the disruption budgets that guard it."""

    pod: str
    priority: int
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Eviction:
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
class Preemption:
    """The outcome of asking whether room can be made."""

    chosen: Eviction | None = None
    others: tuple[Eviction, ...] = ()
    """Further nodes where it could be done, at a higher cost."""
    no_help: tuple[NoHelp, ...] = ()
    message: str = ""
    """Why nothing can be done, as the pod's condition tells it."""


def preemption_of(decision: Decision, state: ClusterState) -> Preemption | None:
    """What the post-filters found; None if they were not asked."""
    result, status = decision.post_filter, decision.post_filter_status
    if result is None and status is None:
        return None
    message = status.message if status is not None else ""
    details = result.details if result is not None else None
    if not isinstance(details, PreemptionDetails) or details.run is None:
        return Preemption(_by_another_plugin(decision), message=message)
    reader = _Reader(state)
    evictions = {state.nodes.names[c.row]: reader.eviction(c) for c in details.run.candidates}
    chosen = evictions.pop(result.nominated, None) if result is not None and result.nominated else None
    return Preemption(
        chosen=chosen,
        others=tuple(sorted(evictions.values(), key=_cost)),
        no_help=reader.no_help(details),
        message=message,
    )


def _by_another_plugin(decision: Decision) -> Eviction | None:
    """A plugin of the user may name a node and victims without further details."""
    result = decision.post_filter
    if result is None or not result.nominated:
        return None
    return Eviction(result.nominated, tuple(Victim(v.pod.key, v.pod.priority) for v in result.victims))


def _cost(eviction: Eviction) -> tuple[int, int, int, str]:
    """The order in which a reader will want to see them; the choice itself is the plugin's."""
    highest = max((victim.priority for victim in eviction.victims), default=0)
    return eviction.budget_violations, highest, len(eviction.victims), eviction.node


class _Reader:
    """Turns rows and placed pods into names."""

    def __init__(self, state: ClusterState) -> None:
        self._names = state.nodes.names
        self._live = state.nodes.live
        self._size = state.nodes.size
        self._budgets = Budgets(state.objects)

    def eviction(self, candidate: Candidate) -> Eviction:
        victims = tuple(self._victim(placed) for placed in candidate.victims)
        return Eviction(self._names[candidate.row], victims, candidate.violations)

    def _victim(self, placed: PlacedPod) -> Victim:
        guards = tuple(budget.name for budget in self._budgets.of(placed.facts))
        return Victim(placed.pod.key, placed.pod.priority, guards)

    def no_help(self, details: PreemptionDetails) -> tuple[NoHelp, ...]:
        """Nodes that stay as they are, by reason: first those that were tried in vain."""
        assert details.run is not None
        nodes: dict[str, list[str]] = {}
        for status, rows in details.run.failures:
            nodes.setdefault(status.message, []).extend(self._names[row] for row in rows.tolist())
        tried = set(details.run.potential.tolist())
        untried = [self._names[row] for row in range(self._size) if self._live[row] and row not in tried]
        if untried:
            nodes.setdefault(NOT_HELPFUL, []).extend(untried)
        return tuple(NoHelp(reason, tuple(sorted(names))) for reason, names in nodes.items())

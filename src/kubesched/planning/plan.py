"""A plan: what is to be moved, placed, freed and bought, how good that is at best, and how it was checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kubesched.api.errors import UserError


class PlanError(UserError):
    """A question without a plan: it names something that does not exist, or contradicts itself."""


class PlanOutcome(StrEnum):
    """How a search for a plan ended."""

    FOUND = "found"
    """The plan reaches what was asked for."""
    PARTIAL = "partial"
    """The plan is the best that was found; whether there is a better one is open."""
    UNCHANGED = "unchanged"
    """Nothing has to be done, or nothing better was found."""
    IMPOSSIBLE = "impossible"
    """No plan can reach it: `reason` says why, and that is proven."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A running pod that is evicted, so that its owner makes it anew on another node."""

    pod: str
    from_node: str
    to_node: str
    wave: int = 0
    """Moves of one wave are made together, and the next wave waits for them; counted from 1."""


@dataclass(frozen=True, slots=True)
class PlannedPlacement:
    """A pending pod that runs."""

    pod: str
    node: str
    wave: int = 0
    """After the moves of this wave; 0 at once."""


class NodeFate(StrEnum):
    """What becomes of a node."""

    FREED = "freed"
    ADDED = "added"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that a plan empties, adds or replaces; the price is per hour, in the currency of the price list."""

    name: str
    fate: NodeFate
    type: str = ""
    price: float | None = None
    count: int = 1
    """How many equal nodes are added; 1 for a node that exists."""


@dataclass(frozen=True, slots=True)
class ShadowPrice:
    """What is scarce: the share of the bound that one resource, on one kind of node, stands for."""

    what: str
    share: float


@dataclass(frozen=True, slots=True)
class PlanBound:
    """What no plan can do better than."""

    value: float
    """A least number of moves or sum of money, or a greatest number of nodes or amount of a resource, in `unit`."""
    unit: str
    relaxes: tuple[str, ...]
    """What the bound leaves out of account. It only ever leaves out, so it holds whatever is configured."""
    proof: str
    """How it was found."""
    scarce: tuple[ShadowPrice, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """How a plan was checked. A plan that failed a check is not shown."""

    how: tuple[str, ...]
    """In words, in the order in which it was done."""
    decided: int = 0
    """Placements that the scheduler's engine was asked for."""
    refused: int = 0
    """How many of these placements the engine refused; other nodes were planned then."""
    seconds: float = 0.0
    """How long the plan takes in virtual time."""
    needs_nominations: bool = False
    """Whether pods go elsewhere, or find no node, unless each is nominated to the node that was planned."""
    astray: int = 0
    """Pods that went elsewhere without nominations."""
    stuck: int = 0
    """Pods that found no node without nominations."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in waves, and how far from the best possible it is."""

    goal: str
    outcome: PlanOutcome
    reason: str = ""
    """Why it is impossible, partial or unchanged."""
    moves: tuple[PlannedMove, ...] = ()
    placements: tuple[PlannedPlacement, ...] = ()
    waiting: tuple[str, ...] = ()
    """Pending pods that are left waiting."""
    nodes: tuple[PlannedNode, ...] = ()
    value: float = 0.0
    """What the plan comes to, in the unit of the bound."""
    cost_before: float | None = None
    cost_after: float | None = None
    bound: PlanBound | None = None
    check: PlanCheck | None = None
    observed_at: str = ""
    """When the cluster was read. A plan is about that moment."""

    @property
    def waves(self) -> int:
        return max((move.wave for move in self.moves), default=0)

    @property
    def gap(self) -> float | None:
        """The distance of value and bound, as a share of the bound."""
        if self.bound is None or not self.bound.value:
            return None
        return abs(self.value - self.bound.value) / abs(self.bound.value)

    def nodes_that_are(self, fate: NodeFate) -> list[PlannedNode]:
        return [node for node in self.nodes if node.fate is fate]


def in_words(scarce: Sequence[ShadowPrice]) -> str:
    """What is scarcest, with its share."""
    return ", ".join(f"{price.what} {price.share:.0%}" for price in scarce[:3]) or "room"


def by_wave(moves: Iterable[PlannedMove]) -> list[list[PlannedMove]]:
    """The moves of each wave, in order."""
    waves: dict[int, list[PlannedMove]] = {}
    for move in moves:
        waves.setdefault(move.wave, []).append(move)
    return [waves[number] for number in sorted(waves)]

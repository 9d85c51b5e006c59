"""The answer to "what if?": the difference between the cluster as it is and as it would be, as plain records."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.simulate.report import Figures, Preempted
from kubesched.simulate.rolling_upgrade import Forced, Replaced


@dataclass(frozen=True, slots=True)
class Moved:
    """A pod that is on another node than before, or on its first one."""

    pod: str
    from_node: str
    """Empty if it waited, or was not there."""
    to_node: str
    is_new: bool = False
    """Whether it is there only because of the changes."""
    unmanaged: bool = False
    """Whether it runs and has no owner, so that nobody would make it anew once it is gone."""


@dataclass(frozen=True, slots=True)
class PodLeftWaiting:
    """A pod that has no node because of the changes."""

    pod: str
    from_node: str
    reason: str
    """In the words of its condition."""
    is_new: bool = False
    unmanaged: bool = False


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """A disruption budget whose pods have to go elsewhere."""

    budget: str
    wanted: int
    """How many of its pods have to be up."""
    before: int
    """How many are up before."""
    after: int
    leaving: int
    """How many lose the node they are on."""
    short: bool
    """Whether fewer are up in the end than have to be, because of the changes."""
    slows: bool
    """Whether more have to leave than may at once: a drain would wait for some to be up again, or for ever."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number before and after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ShareChange:
    """What is requested of a resource, as a fraction of what there is; None where there is none of it."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Fullness:
    """A zone, or all nodes, before and after."""

    name: str
    nodes: Count
    pods: Count
    resources: dict[str, ShareChange]


@dataclass(frozen=True, slots=True)
class WorkloadSpread:
    """A workload whose pods are in other zones than before."""

    workload: str
    zones: dict[str, Count]


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """A pod group that the changes matter to: its pods run together, or wait together."""

    group: str
    needed: int
    """So many of its pods must have nodes for it to be worth running."""
    pods: int
    """How many it has afterwards."""
    before: int
    """How many of them have nodes before."""
    after: int
    moved: int
    """How many of those are on another node than before."""
    runs: bool
    """Whether it has as many as it needs, afterwards."""
    reason: str
    """Why the others wait, in the words of the group's condition."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """How a rolling upgrade went."""

    seconds: float
    replaced: tuple[Replaced, ...]
    forced: tuple[Forced, ...]


@dataclass(frozen=True)
class WhatIfAnswer:
    """The difference that changes to a cluster make."""

    changes: tuple[str, ...]
    seed: int
    moved: tuple[Moved, ...]
    placed: tuple[Moved, ...]
    """Pods that have a node only because of the changes: those that waited, and new ones."""
    waiting: tuple[PodLeftWaiting, ...]
    gone: tuple[str, ...]
    """Pods that are there no longer, and that nobody makes anew."""
    evictions: tuple[Preempted, ...]
    """By pods of higher priority, and only because of the changes."""
    budgets: tuple[BudgetOutcome, ...]
    total: Fullness
    zones: tuple[Fullness, ...]
    spread: dict[str, ShareChange]
    """By resource: the standard deviation between the nodes that offer it."""
    workloads: tuple[WorkloadSpread, ...]
    before: Figures
    after: Figures
    groups: tuple[GroupOutcome, ...] = ()
    """Pod groups, where they are scheduled as such: those that do not run first."""
    upgrade: Upgraded | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether no pod is treated otherwise."""
        return not (self.moved or self.placed or self.waiting or self.gone or self.evictions)

    @property
    def reasons(self) -> list[tuple[str, list[PodLeftWaiting]]]:
        """Waiting pods by the reason, that of most pods first."""
        groups: dict[str, list[PodLeftWaiting]] = {}
        for each in self.waiting:
            groups.setdefault(each.reason, []).append(each)
        return sorted(groups.items(), key=lambda group: -len(group[1]))

    @property
    def broken_budgets(self) -> tuple[str, ...]:
        """Budgets that are not kept: too few pods are up in the end, or some were evicted against it."""
        forced = self.upgrade.forced if self.upgrade is not None else ()
        short = [each.budget for each in self.budgets if each.short]
        return tuple(dict.fromkeys([*short, *(budget for each in forced for budget in each.budgets)]))

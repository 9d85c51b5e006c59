"""The answer to "what if" for the page: two maps, the difference, and whom it touches, workload by workload."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from kubesched.ask.what_if.answer import ClusterOutcome, WhatIfAnswer
from kubesched.ask.what_if.what_if import WhatIfOutcome
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.node_map import NodeMap, NodeMapModel
from kubesched.ui.model.owners import WorkloadName, owner_of

_ROWS = 500
"""Of longer lists the first are shown; the file has all."""
_CHANGES = ("moved", "waiting", "placed", "gone", "evicted")


@dataclass(frozen=True, slots=True)
class ChangedWorkload:
    """What becomes of the pods of a workload, as numbers of them."""

    workload: WorkloadName
    moved: int
    waiting: int
    placed: int
    gone: int
    evicted: int
    reasons: tuple[tuple[str, int], ...]
    """Why they wait."""


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """The answer as the page shows it."""

    before: NodeMap
    after: NodeMap
    difference: WhatIfAnswer
    """Long lists are cut."""
    moved: int
    placed: int
    waiting: int
    gone: int
    evicted: int
    workloads: tuple[ChangedWorkload, ...]
    """Whom it touches: those of which most pods wait first."""


def what_if_view(outcome: WhatIfOutcome, group: str) -> WhatIfView:
    """The answer to show; `group` is the label by which the maps are grouped."""
    before, after, found = outcome
    shown = replace(
        found,
        moved=found.moved[:_ROWS],
        placed=found.placed[:_ROWS],
        waiting=found.waiting[:_ROWS],
        gone=found.gone[:_ROWS],
        evictions=found.evictions[:_ROWS],
        workloads=found.workloads[:_ROWS],
    )
    return WhatIfView(
        before=_map(before, group),
        after=_map(after, group),
        difference=shown,
        moved=len(found.moved),
        placed=len(found.placed),
        waiting=len(found.waiting),
        gone=len(found.gone),
        evicted=sum(len(each.victims) for each in found.evictions),
        workloads=tuple(_by_workload(outcome)),
    )


def _by_workload(outcome: WhatIfOutcome) -> list[ChangedWorkload]:
    before, after, found = outcome
    counts: dict[WorkloadName, Counter[str]] = {}
    reasons: dict[WorkloadName, Counter[str]] = {}

    def note(pod: str, what: str) -> WorkloadName:
        known = after.pods.get(pod) or before.pods.get(pod)
        namespace, _, own = pod.partition("/")
        name = owner_of(known[0]) if known is not None else WorkloadName(namespace, "Pod", own)
        counts.setdefault(name, Counter())[what] += 1
        return name

    for moved in found.moved:
        note(moved.pod, "moved")
    for placed in found.placed:
        note(placed.pod, "placed")
    for gone in found.gone:
        note(gone, "gone")
    for eviction in found.evictions:
        for victim in eviction.victims:
            note(victim, "evicted")
    for waiting in found.waiting:
        reasons.setdefault(note(waiting.pod, "waiting"), Counter())[waiting.reason] += 1
    touched = [
        ChangedWorkload(name, **{what: number[what] for what in _CHANGES}, reasons=tuple(reasons.get(name, {}).items()))
        for name, number in counts.items()
    ]
    return sorted(touched, key=lambda each: (-each.waiting, -each.evicted, -each.moved, each.workload))[:_ROWS]


def _map(side: ClusterOutcome, group: str) -> NodeMap:
    state = ClusterState()
    for node in side.nodes.values():
        state.apply(node)
    for pod, _ in side.pods.values():
        if pod.spec.node_name:
            state.apply(pod)
    return NodeMapModel(state).whole(group)

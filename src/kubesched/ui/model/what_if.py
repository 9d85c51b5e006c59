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
_FATES = ("moved", "waiting", "placed", "gone", "evicted")


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
    before, after, difference = outcome
    before_map, after_map = _maps(before, after, group)
    lists = ("moved", "placed", "waiting", "gone", "evictions", "workloads")
    return WhatIfView(
        before=before_map,
        after=after_map,
        difference=replace(difference, **{name: getattr(difference, name)[:_ROWS] for name in lists}),
        moved=len(difference.moved),
        placed=len(difference.placed),
        waiting=len(difference.waiting),
        gone=len(difference.gone),
        evicted=sum(len(eviction.victims) for eviction in difference.evictions),
        workloads=tuple(_by_workload(outcome)),
    )


def _by_workload(outcome: WhatIfOutcome) -> list[ChangedWorkload]:
    before, after, difference = outcome
    counts: dict[WorkloadName, Counter[str]] = {}
    reasons: dict[WorkloadName, Counter[str]] = {}

    def count(key: str, fate: str) -> WorkloadName:
        pod = after.pods.get(key) or before.pods.get(key)
        namespace, _, name = key.partition("/")
        workload = owner_of(pod[0]) if pod is not None else WorkloadName(namespace, "Pod", name)
        counts.setdefault(workload, Counter())[fate] += 1
        return workload

    for moved in difference.moved:
        count(moved.pod, "moved")
    for placed in difference.placed:
        count(placed.pod, "placed")
    for gone in difference.gone:
        count(gone, "gone")
    for eviction in difference.evictions:
        for victim in eviction.victims:
            count(victim, "evicted")
    for waiting in difference.waiting:
        reasons.setdefault(count(waiting.pod, "waiting"), Counter())[waiting.reason] += 1
    changed = [
        ChangedWorkload(workload, **{f: fates[f] for f in _FATES}, reasons=tuple(reasons.get(workload, {}).items()))
        for workload, fates in counts.items()
    ]
    return sorted(changed, key=lambda row: (-row.waiting, -row.evicted, -row.moved, row.workload))[:_ROWS]


def _maps(before: ClusterOutcome, after: ClusterOutcome, group: str) -> tuple[NodeMap, NodeMap]:
    """The second differs from the first by a few nodes and pods, usually: only those are looked at for it."""
    state = ClusterState()
    drawn = NodeMapModel(state)
    for node in before.nodes.values():
        state.apply(node)
    placed = {key: pod for key, (pod, _) in before.pods.items() if pod.spec.node_name}
    for pod in placed.values():
        state.apply(pod)
    first = drawn.whole(group)
    placed_then = {key: pod for key, (pod, _) in after.pods.items() if pod.spec.node_name}
    for key, pod in placed.items():
        if placed_then.get(key) is not pod:
            state.delete(pod)
    for name, node in before.nodes.items():
        if name not in after.nodes:
            state.delete(node)
    for name, node in after.nodes.items():
        if before.nodes.get(name) is not node:
            state.apply(node)
    for key, pod in placed_then.items():
        if placed.get(key) is not pod:
            state.apply(pod)
    return first, drawn.whole(group)

"""The answer to "what if" for the page: two maps, the difference, and whom it touches, workload by workload."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.what_if.answer import ClusterOutcome, WhatIfAnswer
from kubesched.ask.what_if.what_if import WhatIfOutcome
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.node_map import NodeMap, NodeMapModel
from kubesched.ui.model.owners import WorkloadName, owner_by_key

_ROWS = 500
"""Of longer lists the first are shown; the file has all."""


@dataclass(frozen=True, slots=True)
class ChangedWorkload:
    """What becomes of the pods of a workload, as numbers of them."""

    workload: WorkloadName
    pods: Counter[str]
    """By their fate: moved, waiting, placed, gone, evicted."""
    reasons: tuple[tuple[str, int], ...]
    """Why they wait."""


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """The answer as the page shows it."""

    before: NodeMap
    after: NodeMap
    difference: WhatIfAnswer
    """Long lists are cut."""
    pods: Counter[str]
    """All of them by their fate."""
    workloads: tuple[ChangedWorkload, ...]
    """Whom it touches: those of which most pods wait first."""


def what_if_view(outcome: WhatIfOutcome, group: str) -> WhatIfView:
    """The answer to show; `group` is the label by which the maps are grouped."""
    before, after, difference = outcome
    before_map, after_map = _maps(before, after, group)
    lists = ("moved", "placed", "waiting", "gone", "evictions", "workloads")
    changed = _by_workload(outcome)
    return WhatIfView(
        before=before_map,
        after=after_map,
        difference=replace(difference, **{name: getattr(difference, name)[:_ROWS] for name in lists}),
        pods=sum((workload.pods for workload in changed), Counter()),
        workloads=tuple(changed[:_ROWS]),
    )


def _by_workload(outcome: WhatIfOutcome) -> list[ChangedWorkload]:
    before, after, difference = outcome
    counts: dict[WorkloadName, Counter[str]] = {}
    reasons: dict[WorkloadName, Counter[str]] = {}

    def count(key: str, fate: str) -> WorkloadName:
        pod, _ = after.pods.get(key) or before.pods.get(key) or (None, "")
        workload = owner_by_key(key, pod)
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
        ChangedWorkload(workload, fates, tuple(reasons.get(workload, {}).items())) for workload, fates in counts.items()
    ]
    order = ("waiting", "evicted", "moved")
    return sorted(changed, key=lambda row: (*(-row.pods[fate] for fate in order), row.workload))


def _maps(before: ClusterOutcome, after: ClusterOutcome, group: str) -> tuple[NodeMap, NodeMap]:
    """The second is made from the first: usually a few nodes and pods are different."""
    state = ClusterState()
    drawn, objects, objects_then = NodeMapModel(state), _nodes_and_pods(before), _nodes_and_pods(after)
    for obj in objects.values():
        state.apply(obj)
    first = drawn.whole(group)
    for name, obj in reversed(objects.items()):
        if name not in objects_then or (isinstance(obj, Pod) and objects_then[name] is not obj):
            state.delete(obj)
    for name, obj in objects_then.items():
        if objects.get(name) is not obj:
            state.apply(obj)
    return first, drawn.whole(group)


def _nodes_and_pods(side: ClusterOutcome) -> dict[str, Node | Pod]:
    """Nodes by name, and the pods that are on them by namespace and name."""
    return {**side.nodes, **{key: pod for key, (pod, _) in side.pods.items() if pod.spec.node_name}}

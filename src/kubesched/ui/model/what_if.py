"""What if, as the page shows it: two maps, and who is treated otherwise and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubesched.ask.what_if.answer import WhatIfAnswer
from kubesched.ask.what_if.outcome import ClusterOutcome
from kubesched.ask.what_if.what_if import WhatIfOutcome
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.node_map import NodeMap, NodeMapModel

_ROWS = 500
"""Of longer lists the first are shown; the file has all."""


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
    )


def _map(side: ClusterOutcome, group: str) -> NodeMap:
    state = ClusterState()
    for node in side.nodes.values():
        state.apply(node)
    for pod, _ in side.pods.values():
        if pod.spec.node_name:
            state.apply(pod)
    return NodeMapModel(state).whole(group)

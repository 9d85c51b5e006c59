"""The scheduler to which random histories happen: by mixture, and in which way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.unit.scheduler.group_world import ALL_GATES, GroupWorld
from tests.unit.scheduler.test_pod_group_turns import MemoryExtender
from tests.waiting_rare_steps import FRUGAL
from tests.waiting_steps import CLOSED, DOOR

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config.features import DEFAULT_FEATURES
from kubesched.framework.cycle import Cycle
from kubesched.framework.extender import Filtered
from kubesched.framework.plugin import PermitPlugin
from kubesched.framework.status import Code, Status

FOREVER = 1e12
"""Seconds: no pod is tried again merely because it has waited for long."""


@dataclass(frozen=True)
class Way:
    """How a history happens: to which scheduler, and how that is driven."""

    batched: bool = True
    on_loop: bool = False


class Doorkeeper(PermitPlugin):
    """Has pods with a label wait until it is told what to do with them, or for five seconds."""

    name = "Doorkeeper"

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return (Status(Code.WAIT), 5.0) if DOOR in pod.metadata.labels else (None, 0.0)


class ClosedNodes(MemoryExtender):
    """Refuses nodes with a label."""

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        refused = {node.name: "closed" for node in nodes if CLOSED in node.metadata.labels}
        return Filtered(frozenset(node.name for node in nodes) - refused.keys(), refused, {})


FEATURES = {
    "groups": ALL_GATES,
    "changing groups": ALL_GATES,
    "device owners": replace(DEFAULT_FEATURES, device_taint_rules=True),
}


def world_of(mixture: str, way: Way, kind: type[GroupWorld] = GroupWorld) -> GroupWorld:
    return kind(
        features=FEATURES.get(mixture, DEFAULT_FEATURES),
        profiles=((FRUGAL, ("DefaultPreemption", "TaintToleration")),) if mixture == "profiles" else (),
        plugins=(Doorkeeper,) if mixture in ("permit", "claims denied") else (),
        extenders=[ClosedNodes()] if mixture == "extenders" else (),
        batched=way.batched,
        longest_wait=FOREVER,
    )

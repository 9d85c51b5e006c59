"""NodeDeclaredFeatures: some pods need a feature that the node must have declared."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unresolvable
from kubesched.plugins.shared.hinting import queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32
from kubesched.state.facts import StateKey

MISSING = unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"


_REQUIRED = StateKey[frozenset[str]]("NodeDeclaredFeatures")


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Rejects nodes that have not declared what the pod needs."""

    name = "NodeDeclaredFeatures"
    pre_filter_reads = Reads(PodFields.SPEC, Scope.NOTHING)
    filter_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def events_to_register(self) -> tuple[Interest, ...]:
        if not self.context.features.declared_features:
            return ()
        return (
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _after_node),
            *waits_for_pods(self.context.features.release, own=Action.UPDATE, own_hint=_after_own_change),
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if not self.context.features.declared_features:
            return SKIP
        required = cycle.shared_facts.derived(required_features, cycle.pod)
        if not required:
            return SKIP
        cycle.write(_REQUIRED, required)
        return None

    def sign(self, cycle: Cycle) -> Hashable:
        return cycle.read(_REQUIRED)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        needed = cycle.read(_REQUIRED)
        table = cycle.state.nodes.nodes
        lacking = (
            node is not None and not needed.issubset(node.status.declared_features)
            for node in (table[row] for row in nodes.row_ids.tolist())
        )
        return self.reject(np.fromiter(lacking, dtype=np.bool_, count=len(nodes)), MISSING)


def _after_node(pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
    """A node declared other features than before, whichever."""
    return queue_if(old is None or old.status.declared_features != new.status.declared_features)


def _after_own_change(pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
    """The pod itself needs other features than before."""
    return queue_if(required_features(old) != required_features(new))


def required_features(pod: Pod) -> frozenset[str]:
    """The features that follow from the pod's definition."""
    spec = pod.spec
    needed = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(needed)

"""DynamicResources, as far as pods without claims meet it: its place in the order, its words, its score of 0."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle, CycleStateMissingError
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.filters import FilterRunner
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.status import SKIP, SKIP_ALIKE, Status, error, unresolvable, unschedulable
from kubesched.plugins.device_resources import extended_resources, served_by_devices
from kubesched.plugins.hinting import after_own_change, queue_if, waits_for
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32

CANNOT_ALLOCATE = unresolvable("cannot allocate all claims")
STILL_NOT_SCHEDULABLE = unschedulable("still not schedulable")
NO_CLAIMS = unschedulable("no new claims to deallocate")
NOT_SUPPORTED = unresolvable("pod uses resource claims, which this version of kubesched does not allocate")


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
):
    """Says of pods without claims that there is nothing to do, and refuses those with claims in plain words."""

    name = "DynamicResources"
    looks_only_at_facts = True
    score_scope = Scope.NODE_OBJECT

    def events_to_register(self) -> tuple[Interest, ...]:
        new_or_changed = Action.ADD | Action.UPDATE
        return (
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            waits_for(Kind.RESOURCE_CLAIM, new_or_changed, _after_claim),
            waits_for(Kind.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, after_own_change),
            waits_for(Kind.DEVICE_CLASS, new_or_changed),
            waits_for(Kind.RESOURCE_SLICE, new_or_changed),
        )

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        return None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if cycle.pod.spec.resource_claims:
            return NOT_SUPPORTED
        if not extended_resources(cycle):
            return SKIP_ALIKE
        served = served_by_devices(cycle)
        if not served:
            return SKIP
        cycle.write(self.name, np.array([cycle.state.nodes.resource_id(name) for name in sorted(served)]))
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        """No device is ever free, as long as none is allocated here; nodes with a device plugin need none."""
        lacking = nodes.allocatable(cycle.read(self.name)).min(axis=0) <= 0
        return self.reject(np.asarray(lacking), CANNOT_ALLOCATE)

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, filters: FilterRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        # Where an earlier pre-filter rejected the pod outright, this one was not asked, and kube-scheduler says so.
        if self.name in cycle.notes:
            return None, STILL_NOT_SCHEDULABLE
        asked = self.name in cycle.skipped_filters or cycle.pod.spec.resource_claims
        return None, NO_CLAIMS if asked else error("not found")

    def score_question(self, cycle: Cycle) -> Hashable:
        if self.name not in cycle.skipped_filters and self.name not in cycle.notes:
            raise CycleStateMissingError(self.name)
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> int:
        return 0

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return None

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        """Nothing was reserved."""

    def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return None


def _after_claim(pod: Pod, old: KubeObject | None, new: KubeObject, state: ClusterState) -> Hint:
    """A claim came or changed that the pod names, or that was made for it."""
    named = {entry.resource_claim_name for entry in pod.spec.resource_claims}
    made = {entry.resource_claim_name for entry in pod.status.resource_claim_statuses}
    return queue_if(pod.namespace == new.namespace and new.name in named | made)

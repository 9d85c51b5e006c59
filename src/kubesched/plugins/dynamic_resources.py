"""DynamicResources, as far as pods without claims meet it: its place in the order, its words, its score of 0."""

from __future__ import annotations

from collections.abc import Hashable

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle, CycleStateMissingError
from kubesched.framework.diagnosis import Diagnosis
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
from kubesched.framework.status import SKIP_ALIKE, Status, error, unresolvable, unschedulable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32

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

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        return None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return NOT_SUPPORTED if cycle.pod.spec.resource_claims else SKIP_ALIKE

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        # Asked only if the pre-filter is disabled: then kube-scheduler ends with an error, and so does this.
        raise CycleStateMissingError(self.name)

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, filters: FilterRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        # Where an earlier pre-filter rejected the pod outright, this one was not asked, and kube-scheduler says so.
        asked = self.name in cycle.skipped_filters or cycle.pod.spec.resource_claims
        return None, NO_CLAIMS if asked else error("not found")

    def score_question(self, cycle: Cycle) -> Hashable:
        if self.name not in cycle.skipped_filters:
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

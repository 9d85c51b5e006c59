"""What a pod was told that found no node: the next one that is equivalent is told the same, if nothing changed between.

Pods come in hundreds of the same kind, and where one of them finds no node, nothing changes by that.
"""

from __future__ import annotations

from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts

_MOST_KEPT = 64
"""Kinds of pods. What is kept of each has columns of all nodes."""
_LARGEST = 16_000
"""Bytes of what a pod is. Larger ones do not come in hundreds, and should be gone from memory when they are deleted."""


class RepeatedFailures:
    """Decisions on the cluster as it is now, one for each kind of pods that it has no node for."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version: tuple[int, ...] = ()
        self._known: dict[PodFacts, Decision] = {}

    def repeat(self, decision: Decision) -> bool:
        """Fill in what an equivalent pod was told, if one was; whether there is nothing left to decide."""
        if not self._known:
            return False
        if self._version != self._state.version:
            self._known.clear()
            return False
        cycle = decision.cycle
        known = self._known.get(cycle.facts)
        if known is None or not self._is_like_others(cycle):
            return False
        cycle.skipped_filters = known.cycle.skipped_filters
        decision.outcome, decision.diagnosis = known.outcome, known.diagnosis
        decision.post_filter, decision.post_filter_status = known.post_filter, known.post_filter_status
        decision.trace = known.trace
        for point, status in (("PreFilter", None), ("Filter", None), ("PostFilter", known.post_filter_status)):
            cycle.lap(point, status)
        return True

    def note(self, decision: Decision) -> None:
        """A decision that was just made. One that is to have consequences is not to be repeated."""
        diagnosis, cycle = decision.diagnosis, decision.cycle
        if decision.outcome is not Outcome.UNSCHEDULABLE or diagnosis is None or diagnosis.filter_outcome is None:
            return
        room, pre_filter = decision.post_filter, decision.trace.pre_filter
        is_final = room is None or not (room.nominated or room.victims)
        is_about_all_nodes = pre_filter is not None and pre_filter.names is None
        if is_final and is_about_all_nodes and not cycle.deferred and self._is_like_others(cycle):
            if self._version != self._state.version or len(self._known) >= _MOST_KEPT:
                self._version = self._state.version
                self._known.clear()
            self._known[cycle.facts] = decision

    def _is_like_others(self, cycle: Cycle) -> bool:
        """Whether nothing counts that equivalent pods may differ in, or that changes unseen, as volumes and
        devices do that are set aside."""
        pod = cycle.pod
        return (
            cycle.latest is pod
            and not cycle.facts.extended
            and len(cycle.facts.fingerprint) <= _LARGEST
            and not pod.spec.volumes
            and not pod.spec.resource_claims
            and not pod.status.nominated_node_name
            and not self._state.nominated.node_of(pod)
        )

"""Decisions about pods that found no node, repeated for pods with the same signature as long as nothing changed.

Pods come in hundreds of the same kind, and where one of them finds no node, nothing changes by that. Only plugins that
do not declare what they read are asked again: if their answers are the same, so is the decision.
"""

from __future__ import annotations

from collections.abc import Hashable

from kubesched.framework.bound_profile import BoundProfile
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.state.cluster import ClusterState

_MOST_KEPT = 64
"""Signatures. What is kept of each has columns of all nodes."""
_LARGEST = 16_000
"""Bytes of what a pod is. Larger ones do not come in hundreds, and should be gone from memory when they are deleted."""


class RepeatedFailures:
    """Decisions on the cluster as it is now, one for each signature of pods that it has no node for."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version: tuple[int, ...] = ()
        self._known: dict[Hashable, Decision] = {}

    def find(self, cycle: Cycle, profile: BoundProfile) -> Decision | None:
        """The decision about a pod with the same signature, if all filters say of this pod what they said of that."""
        if not self._known:
            return None
        if self._version != self._state.version:
            self._known.clear()
            return None
        known = self._known.get(self._key(cycle, profile))
        if known is None or not profile.undeclared:
            return known
        outcome, skipped = known.trace.filter_outcome, known.cycle.skipped_filters
        assert outcome is not None
        same = profile.filters.say_the_same(cycle, profile.undeclared, outcome, skipped)
        if not same or self._state.nominated.nodes:
            return None
        cycle.share_notes(known.cycle)
        return known

    def note(self, decision: Decision, profile: BoundProfile) -> None:
        """Keep a decision that was just made, unless it has consequences, such as a preemption."""
        diagnosis, cycle = decision.diagnosis, decision.cycle
        if decision.outcome is not Outcome.UNSCHEDULABLE or diagnosis is None or diagnosis.filter_outcome is None:
            return
        room, pre_filter = decision.post_filter, decision.trace.pre_filter
        is_final = room is None or not (room.nominated or room.victims)
        is_about_all_nodes = pre_filter is not None and pre_filter.names is None
        key = self._key(cycle, profile) if is_final and is_about_all_nodes and not cycle.deferred else None
        if key is not None:
            if self._version != self._state.version or len(self._known) >= _MOST_KEPT:
                self._version = self._state.version
                self._known.clear()
            self._known[key] = decision

    def _key(self, cycle: Cycle, profile: BoundProfile) -> Hashable | None:
        """None for a pod that is unlike all others: large, changed meanwhile, nominated, or with claims of its own.

        A signature that is no tuple comes from the spec, which names the profile.
        """
        pod = cycle.pod
        if (
            cycle.latest is not pod
            or len(cycle.facts.fingerprint) > _LARGEST
            or pod.status.nominated_node_name
            or self._state.nominated.node_of(pod)
        ):
            return None
        signature = profile.signature(pod, cycle.facts)
        return None if type(signature) is tuple else signature

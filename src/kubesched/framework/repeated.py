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
"""Decisions, each with columns of all nodes."""
_LARGEST = 16_000
"""Bytes of a pod's fingerprint. Larger pods do not come in hundreds, and should leave memory when they are deleted."""


class RepeatedFailures:
    """Decisions on the cluster as it is now, one for each signature of pods that fit nowhere."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version: tuple[int, ...] = ()
        self._decisions: dict[Hashable, Decision] = {}

    def find(self, cycle: Cycle, profile: BoundProfile) -> Decision | None:
        """The decision about a pod with the same signature, if all filters answer the same about this pod."""
        if not self._decisions:
            return None
        if self._version != self._state.version:
            self._decisions.clear()
            return None
        earlier = self._decisions.get(self._key(cycle, profile))
        if earlier is None or not profile.undeclared:
            return earlier
        outcome, skipped = earlier.trace.filter_outcome, earlier.cycle.skipped_filters
        assert outcome is not None
        is_repeated = profile.filters.repeats(outcome, cycle, profile.undeclared, skipped)
        if not is_repeated or self._state.nominated.nodes:
            return None
        cycle.share_notes(earlier.cycle)
        return earlier

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
            if self._version != self._state.version or len(self._decisions) >= _MOST_KEPT:
                self._version = self._state.version
                self._decisions.clear()
            self._decisions[key] = decision

    def _key(self, cycle: Cycle, profile: BoundProfile) -> Hashable | None:
        """The signature; None for a pod that is large, changed meanwhile or nominated, or has claims of its own.

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

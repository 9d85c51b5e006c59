"""Pods that failed again, and need not be told: they know that they have to wait, and an equal one was just told why.

Where hundreds of equal pods wait and every event makes room for some, one after another fails again. The condition and
the Event of each are two requests and an event of the watch, many times what the attempt itself costs.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kubesched.api.pod import Pod
from kubesched.scheduler.attempt.attempt import Failure
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, without_claim_names

TOLD_EVERY = 1.0
"""Seconds in which one of equal pods that fail again is told."""

_MOST_KEPT = 1000
"""Kinds of pods. Where more fail, the first are forgotten, and told once too often."""


class OldNews:
    """When pods of each kind were last told that they fit nowhere."""

    def __init__(self, state: ClusterState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._told: dict[int, float] = {}
        """By a number for the kind, since what a pod is may be megabytes; in the order of time."""

    def covers(self, pod: Pod, failure: Failure) -> bool:
        """Whether the pod need not be told. If it has to be, it counts as told."""
        if not failure.is_unschedulable_class or failure.nominated or pod.status.nominated_node_name:
            return False
        kind, now = _kind_of(pod, self._state.facts(pod)), self._clock()
        if _knows_that_it_waits(pod) and now - self._told.get(kind, -TOLD_EVERY) < TOLD_EVERY:
            return True
        self._told.pop(kind, None)
        self._told[kind] = now
        if len(self._told) > _MOST_KEPT:
            del self._told[next(iter(self._told))]
        return False


def _knows_that_it_waits(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _kind_of(pod: Pod, facts: PodFacts) -> int:
    """Pods that differ only in the names of their claims, as those that each have a volume of their own, are one."""
    return facts.derived(_but_for_claims, pod) if facts.claims else hash(facts.fingerprint)


def _but_for_claims(pod: Pod) -> int:
    spec = without_claim_names(pod.spec)
    return hash(msgspec.json.encode((pod.namespace, pod.metadata.labels, pod.metadata.controller, spec)))

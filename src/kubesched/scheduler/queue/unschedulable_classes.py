"""The one owner of what is known about classes of equal pods that no node fits.

engine    repeats the decision         until anything changes         (`RepeatedFailures`)
queue     does not try pods of it      until an event may help one    (`is_known_unschedulable`)
reporter  writes no condition, Event   for a second                   (`is_redundant`)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set

import msgspec

from kubesched.api.pod import Pod
from kubesched.framework.profile import Profile
from kubesched.framework.repeated import RepeatedFailures
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, without_claim_names

REPORTED_EVERY = 1.0
"""Seconds in which one of equal pods that fail again is reported."""

_MOST_REPORTED = 1000
"""Classes. Where more fail, the first are forgotten, and reported once too often."""


class UnschedulableClasses(RepeatedFailures):
    """Pods are equal if all plugins of their profile give them the same answers: then one speaks for all.

    A pod with a nominated node is never held back for others, and never speaks for them: room is kept for it alone.
    """

    def __init__(
        self, state: ClusterState, profiles: Mapping[str, Profile], clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(state)
        self._profiles = profiles
        self._clock = clock
        self._unschedulable: dict[Hashable, Pod] = {}
        """By class, the last pod that found no node, while it and all of its class wait for an event."""
        self._reported: dict[int, float] = {}
        """By a number for the class, since what a pod is may be megabytes; in the order of time."""
        self._on_retryable: Callable[[Hashable], None] = lambda equivalence_class: None

    def attach(self, on_retryable: Callable[[Hashable], None]) -> None:
        """`on_retryable` is called with classes that are no longer known to be unschedulable."""
        self._on_retryable = on_retryable

    def class_of(self, pod: Pod) -> Hashable:
        """The signature of the pod. It is a tuple if plugins read fields in which pods rarely agree."""
        return self._profiles[pod.spec.scheduler_name].signature(pod, self._state.facts(pod))

    def is_alone(self, pod: Pod, rejectors: Set[str]) -> bool:
        """Whether the rejection by these plugins says nothing about other pods of the class."""
        rejects_alike = self._profiles[pod.spec.scheduler_name].rejects_alike(rejectors)
        return not rejects_alike or type(self.class_of(pod)) is tuple

    def is_nominated(self, pod: Pod) -> bool:
        return bool(pod.status.nominated_node_name or self._state.nominated.node_of(pod))

    # -- for the queue ------------------------------------------------------------------------------------------------

    def mark_unschedulable(self, pod: Pod) -> None:
        """The pod has just found no node, and waits for an event."""
        self._unschedulable[self.class_of(pod)] = pod

    def mark_retryable(self, equivalence_class: Hashable) -> None:
        """An event may help a pod of this class, or one of its pods is gone."""
        if self._unschedulable.pop(equivalence_class, None) is not None:
            self._on_retryable(equivalence_class)

    def is_known_unschedulable(self, equivalence_class: Hashable) -> bool:
        """Whether a pod of this class would only fail as an equal one that was tried, and was not helped since.

        Nor was any other of the class: an event that helps one that was rejected earlier, and by others, counts.
        """
        equal = self._unschedulable.get(equivalence_class)
        return equal is not None and not self.is_nominated(equal)

    # -- for the reporter ---------------------------------------------------------------------------------------------

    def is_redundant(self, pod: Pod) -> bool:
        """Whether the failure of the pod need not be reported, since its status says so, and an equal one just did.

        Where hundreds of equal pods wait and every event makes room for some, one after another fails again. The
        condition and the Event of each cost many times what the attempt itself costs. If not, it counts as reported.
        """
        number, now = _number_of(pod, self._state.facts(pod)), self._clock()
        if _says_unschedulable(pod) and now - self._reported.get(number, -REPORTED_EVERY) < REPORTED_EVERY:
            return True
        self._reported.pop(number, None)
        self._reported[number] = now
        if len(self._reported) > _MOST_REPORTED:
            del self._reported[next(iter(self._reported))]
        return False


def _says_unschedulable(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _number_of(pod: Pod, facts: PodFacts) -> int:
    """The same for pods that differ only in the names of their claims, such as those of a StatefulSet."""
    return facts.derived(_but_for_claims, pod) if facts.claims else hash(facts.fingerprint)


def _but_for_claims(pod: Pod) -> int:
    spec = without_claim_names(pod.spec)
    return hash(msgspec.json.encode((pod.namespace, pod.metadata.labels, pod.metadata.controller, spec)))

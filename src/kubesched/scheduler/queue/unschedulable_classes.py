"""The classes of equal pods that no node fits, for the engine, the queue and the reporter.

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
"""Seconds in which only one of equal pods that fail again is reported."""

_MOST_REPORTED = 1000
"""Classes. If more fail, the oldest are forgotten, and reported once too often."""


class UnschedulableClasses(RepeatedFailures):
    """Pods are equal if all plugins of their profile answer the same about them: then all fail if one does.

    A pod with a nominated node is in no class: room is kept for it alone.
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
        """By a hash of the class, since a fingerprint may have megabytes: when it was last reported, oldest first."""
        self._on_retryable: Callable[[Hashable], None] = lambda equivalence_class: None

    def attach(self, on_retryable: Callable[[Hashable], None]) -> None:
        """`on_retryable` is called with classes that are no longer known to be unschedulable."""
        self._on_retryable = on_retryable

    def class_of(self, pod: Pod) -> Hashable:
        """The signature of the pod. It is a tuple if plugins read fields in which pods rarely agree."""
        return self._profiles[pod.spec.scheduler_name].signature(pod, self._state.facts(pod))

    def is_alone(self, pod: Pod, rejectors: Set[str]) -> bool:
        """Whether other pods of the class may fit though these plugins rejected this one."""
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
        """Whether a pod of this class would fail: one of them did, and no event has helped any of them since.

        Also an event that helps a pod of the class which other plugins rejected earlier makes it retryable.
        """
        failed_pod = self._unschedulable.get(equivalence_class)
        return failed_pod is not None and not self.is_nominated(failed_pod)

    # -- for the reporter ---------------------------------------------------------------------------------------------

    def is_redundant(self, pod: Pod) -> bool:
        """Whether the failure of the pod need not be reported: its status says so, and one of an equal pod just was.

        Where hundreds of equal pods wait and every event makes room for some, one after another fails again. The
        condition and the Event of each cost many times what the attempt costs. If False, it counts as reported.
        """
        digest, now = _digest_of(pod, self._state.facts(pod)), self._clock()
        if _says_unschedulable(pod) and now - self._reported.get(digest, -REPORTED_EVERY) < REPORTED_EVERY:
            return True
        self._reported.pop(digest, None)
        self._reported[digest] = now
        if len(self._reported) > _MOST_REPORTED:
            del self._reported[next(iter(self._reported))]
        return False


def _says_unschedulable(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _digest_of(pod: Pod, facts: PodFacts) -> int:
    """The same for pods that differ only in the names of their claims, such as those of a StatefulSet."""
    return facts.derived(_digest_without_claims, pod) if facts.claims else hash(facts.fingerprint)


def _digest_without_claims(pod: Pod) -> int:
    spec = without_claim_names(pod.spec)
    return hash(msgspec.json.encode((pod.namespace, pod.metadata.labels, pod.metadata.controller, spec)))

"""The fuse of preemption: a pod that evicted several times in vain evicts no more for a while.

A preemption was in vain if its preemptor asks for another one, was itself evicted for another pod, or evicted pods of
its own owner. By priorities alone pods cannot evict each other in circles; with priorities of groups they can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import group_key
from kubesched.state.cluster import ClusterState

MOST_IN_VAIN = 5
"""Preemptions in vain of one pod, owner or group within `WITHIN` seconds: the next is refused."""
WITHIN = 600.0
_MOST_KEPT = 10_000


@dataclass(eq=False)
class PastPreemption:
    """Victims were evicted for pods of a party."""

    at: float
    party: str
    preemptors: frozenset[str]
    """Identities."""
    is_in_vain: bool


class EvictionFuse:
    """The preemptions of the last minutes, of all profiles. Times are those of the caller's clock, in seconds."""

    def __init__(self, state: ClusterState) -> None:
        self._past: deque[PastPreemption] = deque()
        self._of_party: dict[str, deque[PastPreemption]] = {}
        self._of_pod: dict[str, PastPreemption] = {}

    def is_blown(self, party: str, preemptors: Iterable[str], now: float) -> bool:
        """Whether so many preemptions of the party were in vain that there should be none now."""
        self._forget_before(now - WITHIN)
        asking = frozenset(preemptors)
        vain = sum(past.is_in_vain or bool(past.preemptors & asking) for past in self._of_party.get(party, ()))
        return vain >= MOST_IN_VAIN

    def note(self, party: str, preemptors: Iterable[str], victims: Iterable[Pod], now: float) -> None:
        """Note the victims that were evicted for these pods. Preemptions that made room for a victim were in vain."""
        self._forget_before(now - WITHIN)
        is_in_vain = False
        for victim in victims:
            is_in_vain |= party_of(victim) == party
            if (earlier := self._of_pod.get(victim.identity)) is not None:
                earlier.is_in_vain = True
        past = PastPreemption(now, party, frozenset(preemptors), is_in_vain)
        self._past.append(past)
        self._of_party.setdefault(party, deque()).append(past)
        for identity in past.preemptors:
            self._of_pod[identity] = past

    def _forget_before(self, time: float) -> None:
        while self._past and (self._past[0].at < time or len(self._past) >= _MOST_KEPT):
            past = self._past.popleft()
            of_party = self._of_party[past.party]
            of_party.popleft()
            if not of_party:
                del self._of_party[past.party]
            for identity in past.preemptors:
                if self._of_pod.get(identity) is past:
                    del self._of_pod[identity]


def party_of(pod: Pod) -> str:
    """The group of the pod, its controller, or the pod itself."""
    if key := group_key(pod):
        return f"podgroup/{key}"
    controller = pod.metadata.controller
    return pod.identity if controller is None else controller.uid or f"{pod.namespace}/{controller.name}"

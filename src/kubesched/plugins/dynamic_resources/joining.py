"""Pods that are about to be written into the same claim: the one that has the turn writes all of them at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from kubesched.api.device_claims import AllocationResult, ConsumerReference
from kubesched.state.cluster import ClusterState


class JoinedConsumers:
    """The consumers that wait to be written into a claim, beside others that count on the same devices of it."""

    def __init__(self, state: ClusterState) -> None:
        self._waiting: dict[tuple[str, int], dict[str, ConsumerReference]] = {}

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    @contextmanager
    def joined(
        self, claim: str, allocation: AllocationResult | None, consumer: ConsumerReference
    ) -> Iterator[Collection[ConsumerReference]]:
        """The consumer, and all that wait beside it, at any moment until it leaves.

        Pods that share an allocation share one object; pods that found the claim allocated have None.
        """
        key = claim, id(allocation)
        waiting = self._waiting.setdefault(key, {})
        waiting[consumer.uid] = consumer
        try:
            yield waiting.values()
        finally:
            waiting.pop(consumer.uid, None)  # pods of a group are one consumer
            if not waiting:
                self._waiting.pop(key, None)

"""What a scheduler writes to its cluster: a small interface that a live client and a simulation both implement."""

from __future__ import annotations

from typing import Protocol

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.pod import Pod, PodCondition
from kubesched.plugins.dynamic_resources.writes import ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites


class WriteError(Exception):
    """A write that did not go through. `reason` is that of the API: Conflict, NotFound, InternalError, ..."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ClusterWriter(Protocol):
    """All that is written. Each method may wait, and raises WriteError if it fails."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """The pod, with this uid and no other, runs on that node."""

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        """A condition, and a nomination: None leaves it alone, an empty name clears it."""

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        """Say why in the pod's status, then delete it."""

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        """Claims and volumes that must be bound before the pod is."""

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        """One change of a claim for the pod, as `writes.changed` makes it, or its creation or deletion.

        The claim as it is now; None if it is gone, or if the change was to the pod. Conflicts are tried again; a
        claim that has gone another way meanwhile raises ClaimGoneAnotherWayError. A WriteError says that nothing was
        written, for the devices are given to others then: whoever cannot tell must read the claim and see.
        """

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        """Tell people. Never fails, never waits."""

"""Claims in the binding cycle: allocations and reservations are written, devices waited for; or all is taken back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.api.device_claims import ResourceClaim
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PreBindPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Status, error
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.answers import DeviceView
from kubesched.plugins.dynamic_resources.attempt import NOTES, ClaimAttempt
from kubesched.plugins.dynamic_resources.binding import (
    BINDING_FAILED,
    BINDING_TIMEOUT,
    DeviceBindingFailed,
    awaited_drivers,
    has_all_ready,
    is_too_late,
    must_wait,
)
from kubesched.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from kubesched.plugins.dynamic_resources.ledger import Ledger
from kubesched.plugins.dynamic_resources.writes import (
    ClaimGoneAnotherWayError,
    CreateClaim,
    DeleteClaim,
    ReserveClaim,
    TellExtendedClaim,
    consumer_of,
)
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.writer import ClusterWriter, WriteError
from kubesched.state.cluster import ClusterState

_log = logging.getLogger(__name__)

_END_WITHIN = 5.0
"""Seconds that a write is waited for when its pod is stopped, or the whole process."""


class ClaimBinding:
    """Carries out what DynamicResources left as data in a cycle."""

    def __init__(
        self,
        state: ClusterState,
        writer: ClusterWriter,
        now: Callable[[], float],
        listeners: Sequence[SchedulerListener] = (),
    ) -> None:
        self._ledger: Ledger = state.companion(DeviceView).ledger
        self._notes_time = state.features.device_binding_conditions
        self._writer = writer
        self._now = now
        self._listeners = listeners
        self._awaiting: set[asyncio.Future[None]] = set()

    def concerns(self, profile: Profile, cycle: Cycle) -> bool:
        """Whether there is something to write before the pod is bound."""
        attempt: ClaimAttempt | None = cycle.notes.get(NOTES)
        if attempt is None or not attempt.claims:
            return False
        return any(plugin.name == NOTES.name for plugin in profile.at("pre_bind", PreBindPlugin))

    async def bind(self, profile: Profile, cycle: Cycle, node_name: str) -> Status | None:
        """Write the claims of the pod and wait for their devices; None once all is ready."""
        attempt: ClaimAttempt = cycle.notes[NOTES]
        for index, claim in enumerate(attempt.claims):
            if claim.is_reserved_for(attempt.pod.uid):
                continue
            try:
                await _to_the_end(self._bind(attempt, index))
            except (WriteError, ClaimGoneAnotherWayError) as problem:
                return error(str(problem))
        plugin = profile.plugins[NOTES.name]
        assert isinstance(plugin, DynamicResources)
        if not plugin.waits_for_devices:
            return None
        started = self._now()
        status = await self._wait_for_devices(attempt, node_name, plugin.binding_timeout)
        for listener in self._listeners:
            for driver in sorted({driver for claim in attempt.claims for driver in awaited_drivers(claim)}):
                listener.awaited_devices(profile.name, driver, _outcome(status), self._now() - started)
        return status

    async def carry_out(self, cycle: Cycle | None) -> None:
        """What is to be written because an attempt failed. If that fails too, the next attempt comes here again."""
        attempt: ClaimAttempt | None = None if cycle is None else cycle.notes.get(NOTES)
        if attempt is None:
            return
        writes, attempt.writes = attempt.writes, []
        for write in writes:
            try:
                await self._writer.write_claim(attempt.pod, write)
            except (WriteError, ClaimGoneAnotherWayError) as problem:
                if isinstance(write, DeleteClaim) and isinstance(problem, WriteError) and problem.reason == "NotFound":
                    continue  # somebody was faster, and the watch tells
                _log.warning("claim %s of pod %s: %s", write.claim.key, attempt.pod.key, problem)
                continue
            if isinstance(write, DeleteClaim):
                self._ledger.forget(write.claim)

    def claim_changed(self) -> None:
        """Perhaps the devices of a claim are ready."""
        for waiting in self._awaiting:
            if not waiting.done():
                waiting.set_result(None)

    # -- one claim ----------------------------------------------------------------------------------------------------

    async def _bind(self, attempt: ClaimAttempt, index: int) -> None:
        pod, claim, allocation = attempt.pod, attempt.claims[index], attempt.allocations.get(index)
        is_extended = claim is attempt.extended_claim
        if is_extended and allocation is None:
            return  # a device plugin of the node serves the pod
        set_aside = claim
        try:
            if is_extended and claim.name == IN_MEMORY_NAME:
                claim = attempt.claims[index] = await self._create(attempt, claim)
            write = ReserveClaim(claim, consumer_of(pod), allocation, self._timestamp())
            what = "allocation and reservation" if allocation is not None else "reservation"
            try:
                written = await self._writer.write_claim(pod, write)
            except WriteError as problem:
                raise WriteError(problem.reason, f"add {what} to claim {claim.key}: {problem}") from problem
            assert written is not None
            self._ledger.assume(written)
        finally:
            if allocation is not None:
                self._ledger.release(set_aside)
        if is_extended:
            await self._tell(attempt, written)
        attempt.claims[index] = written

    def _timestamp(self) -> str:
        """When the devices began to be made ready; only that feature asks."""
        if not self._notes_time:
            return ""
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _create(self, attempt: ClaimAttempt, claim: ResourceClaim) -> ResourceClaim:
        nameless = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, name="", uid=""))
        try:
            created = await self._writer.write_claim(attempt.pod, CreateClaim(nameless))
        except WriteError as problem:
            raise WriteError(problem.reason, f"create claim for extended resources {claim.key}: {problem}") from problem
        assert created is not None
        return created

    async def _tell(self, attempt: ClaimAttempt, claim: ResourceClaim) -> None:
        pod, mappings = attempt.pod, attempt.mappings
        if not mappings:
            # As in kube-scheduler, where a pod with claims of its own cannot use the device plugin of a node for a
            # resource that a class serves as well.
            words = f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
            raise WriteError("Invalid", words)
        try:
            await self._writer.write_claim(pod, TellExtendedClaim(claim, mappings))
        except WriteError as problem:
            words = f"update pod {pod.key} ExtendedResourceClaimStatus: {problem}"
            raise WriteError(problem.reason, words) from problem

    # -- devices that take a while ------------------------------------------------------------------------------------

    async def _wait_for_devices(self, attempt: ClaimAttempt, node_name: str, timeout: float) -> Status | None:
        if not any(map(must_wait, attempt.claims)):
            return None
        note = f"waiting for binding conditions for device on node {node_name}"
        self._writer.record_event(
            attempt.pod, related=None, type="Normal", reason="BindingConditionsPending", action="Scheduling", note=note
        )
        is_ready, broken = self._look(attempt, timeout)
        if is_ready or broken is not None:
            return broken
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not is_ready and broken is None:
            listener: asyncio.Future[None] = loop.create_future()
            self._awaiting.add(listener)
            try:
                done, _ = await asyncio.wait((listener,), timeout=max(0.0, deadline - loop.time()))
            finally:
                self._awaiting.discard(listener)
            is_ready, broken = self._look(attempt, timeout)
            if not done and not is_ready:
                return broken or error(f"{BINDING_TIMEOUT}: context deadline exceeded")
        return broken

    def _look(self, attempt: ClaimAttempt, timeout: float) -> tuple[bool, Status | None]:
        """Whether all devices are ready, and why they will not be; neither, if nobody knows yet."""
        for index, known in enumerate(attempt.claims):
            claim = self._ledger.claim(known.name, known.namespace)
            if claim is None:
                return False, error(f'could not find ResourceClaim "{known.key}"')
            attempt.claims[index] = claim
            try:
                if has_all_ready(claim):
                    continue
            except DeviceBindingFailed as failed:
                return False, error(str(failed))
            if is_too_late(claim, self._now(), timeout):
                return False, error(f"{BINDING_TIMEOUT}: claim={claim.name}")
            return False, None
        return True, None


async def _to_the_end(write: Coroutine[Any, Any, None]) -> None:
    """A pod that gives way is stopped before it is bound, but not in the middle of a write, whose devices would be
    given to others though the claim may have them."""
    try:
        writing = asyncio.get_running_loop().create_task(write)
    except RuntimeError:  # without an event loop nobody is stopped
        await write
        return
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait((writing,), timeout=_END_WITHIN)
        writing.cancel()
        raise


def _outcome(status: Status | None) -> str:
    if status is None:
        return "success"
    if status.message.startswith(BINDING_TIMEOUT):
        return "timeout"
    return "failure" if status.message.startswith(BINDING_FAILED) else "error"

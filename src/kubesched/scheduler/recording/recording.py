"""Record: what reached the scheduler and what it decided, a line of JSON each, so that it can be run again.

The first line has the configuration, and the feature gates that are not at their default. A decision is written down
with the draw among equals that it took, a write to the cluster with how it went: a replay needs neither the seed nor
the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, cast

import msgspec

from kubesched.api.custom import CustomObject
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.config import SchedulerConfiguration, to_plain
from kubesched.plugins.dynamic_resources.writes import ClaimGoneAnotherWayError, ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.writer import ClusterWriter, WriteError

FORMAT = "kubesched recording 1"


class Recording:
    """An open recording."""

    def __init__(self, stream: IO[str], configuration: SchedulerConfiguration, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        header = {"format": FORMAT, "config": to_plain(configuration), "featureGates": configuration.features.changed}
        self._write(header)

    def note(self, what: str, **details: Any) -> None:
        self._write({"t": float(self._clock()), "what": what, **details})

    def _write(self, entry: dict[str, Any]) -> None:
        self._stream.write(msgspec.json.encode(entry).decode() + "\n")


class RecordingWriter:
    """A writer that notes how each write went."""

    def __init__(self, writer: ClusterWriter, recording: Recording) -> None:
        self._writer = writer
        self._recording = recording

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self._noted("bind", pod, self._writer.bind(pod, node_name))

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        patch = self._writer.patch_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        await self._noted("patch_status", pod, patch)

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await self._noted("evict", pod, self._writer.evict(pod, condition))

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        await self._noted("write_volumes", pod, self._writer.write_volumes(pod, writes))

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        noted: dict[str, Any] = {"verb": "write_claim", "pod": pod.key}
        try:
            written = await self._writer.write_claim(pod, write)
        except WriteError as problem:
            self._recording.note("write", **noted, error=[problem.reason, str(problem)])
            raise
        except ClaimGoneAnotherWayError as problem:
            self._recording.note("write", **noted, gone=str(problem))
            raise
        self._recording.note("write", **noted, claim=None if written is None else _plain(written))
        return written

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._writer.record_event(pod, related=related, type=type, reason=reason, action=action, note=note)

    async def _noted(self, verb: str, pod: Pod, write: Any) -> None:
        try:
            await write
        except WriteError as problem:
            self._recording.note("write", verb=verb, pod=pod.key, error=[problem.reason, str(problem)])
            raise
        self._recording.note("write", verb=verb, pod=pod.key)


class RecordingScheduler:
    """A scheduler whose every call is noted. Drivers use it in the place of the scheduler."""

    def __init__(self, scheduler: Scheduler, recording: Recording) -> None:
        self._scheduler = scheduler
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def added(self, obj: KubeObject) -> None:
        self._recording.note("added", object=_plain(obj))
        self._scheduler.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._recording.note("updated", old=_plain(old), object=_plain(new))
        self._scheduler.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        self._recording.note("deleted", object=_plain(obj))
        self._scheduler.deleted(obj)

    def flush_backoff(self) -> None:
        self._recording.note("flush_backoff")
        self._scheduler.flush_backoff()

    def flush_leftovers(self) -> None:
        self._recording.note("flush_leftovers")
        self._scheduler.flush_leftovers()

    def permitted(self) -> list[Attempt]:
        over = self._scheduler.permitted()
        if over:
            self._recording.note("permitted", pods=[attempt.queued.key for attempt in over])
        return over

    def pop(self) -> Attempt | None:
        attempt = self._scheduler.pop()
        if attempt is not None:
            self._recording.note("pop", pod=attempt.queued.key)
        return attempt

    def decide(self, attempt: Attempt) -> None:
        self._scheduler.decide(attempt)
        self._recording.note("decide", pod=attempt.queued.key, **described(attempt))

    async def finish(self, attempt: Attempt) -> None:
        self._recording.note("finish", pod=attempt.queued.key)
        await self._scheduler.finish(attempt)
        self._recording.note("finished", pod=attempt.queued.key, outcome=attempt.outcome)


def recorded(scheduler: Scheduler, recording: Recording) -> Scheduler:
    """The scheduler, but noted."""
    return cast(Scheduler, RecordingScheduler(scheduler, recording))


def described(attempt: Attempt) -> dict[str, Any]:
    """What was decided, and by which draw."""
    decision = attempt.decision
    return {
        "phase": attempt.phase,
        "node": attempt.node,
        "message": attempt.failure.message if attempt.failure else "",
        "victims": [victim.pod.key for victim in attempt.victims],
        "among": decision.draw.among if decision else 1,
        "drawn": decision.draw.drawn if decision else 0,
    }


def _plain(obj: KubeObject) -> dict[str, Any]:
    if isinstance(obj, CustomObject):
        return {"resource": obj.resource, "content": obj.content}
    return {**msgspec.to_builtins(obj), "kind": type(obj).__name__}

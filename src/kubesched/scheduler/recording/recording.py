"""Record: what reached the scheduler and what it decided, a line of JSON each, so that it can be run again.

The first line has the configuration, and the feature gates that are not at their default. A decision is written down
with the draw among equals that it took, a write to the cluster with how it went: a replay needs neither the seed nor
the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import IO, Any

import msgspec

from kubesched.api.change import Change
from kubesched.api.custom import CustomObject
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.config import SchedulerConfiguration, to_plain
from kubesched.plugins.dynamic_resources.writes import ClaimGoneAnotherWayError, ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.writer import ClusterWriter, WriteError

FORMAT = "kubesched recording 1"


class Recording(SchedulerListener):
    """An open recording. It listens to the scheduler that is recorded, which writes through a `RecordingWriter`."""

    def __init__(self, stream: IO[str], configuration: SchedulerConfiguration, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        header = {"format": FORMAT, "config": to_plain(configuration), "featureGates": configuration.features.changed}
        self._write(header)

    def note(self, what: str, **details: Any) -> None:
        self._write({"t": float(self._clock()), "what": what, **details})

    def handling(self, change: Change[KubeObject]) -> None:
        before = {"old": _plain(change.old)} if change.old is not None and change.new is not None else {}
        self.note(change.verb, **before, object=_plain(change.obj))

    def flushing_backoff(self) -> None:
        self.note("flush_backoff")

    def flushing_leftovers(self) -> None:
        self.note("flush_leftovers")

    def popped(self, attempt: Attempt) -> None:
        self.note("pop", pod=attempt.queued.key)

    def decided(self, attempt: Attempt) -> None:
        self.note("decide", pod=attempt.queued.key, **described(attempt))

    def waiting(self, attempt: Attempt) -> None:
        self.note("wait", pod=attempt.queued.key)

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        self.note("permitted", pods=[attempt.queued.key for attempt in attempts])

    def finishing(self, attempt: Attempt) -> None:
        self.note("finish", pod=attempt.queued.key)

    def finished(self, attempt: Attempt) -> None:
        self.note("finished", pod=attempt.queued.key, outcome=attempt.outcome)

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
        except WriteError as error:
            self._recording.note("write", **noted, error=[error.reason, str(error)])
            raise
        except ClaimGoneAnotherWayError as error:
            self._recording.note("write", **noted, gone=str(error))
            raise
        self._recording.note("write", **noted, claim=None if written is None else _plain(written))
        return written

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._writer.record_event(pod, related=related, type=type, reason=reason, action=action, note=note)

    async def _noted(self, verb: str, pod: Pod, write: Any) -> None:
        try:
            await write
        except WriteError as error:
            self._recording.note("write", verb=verb, pod=pod.key, error=[error.reason, str(error)])
            raise
        self._recording.note("write", verb=verb, pod=pod.key)


def open_recording(path: str, on_kept: Callable[[Path], None]) -> IO[str]:
    """An empty file for a recording. What was recorded there before may have led to a restart, and is moved aside.

    `on_kept` is called with its new name. Raises OSError. A pipe or a device is written to as it is.
    """
    file = Path(path)
    if file.is_file() and file.stat().st_size > 0:
        kept = next(other for i in count(1) if not (other := Path(f"{path}.{i}")).exists())
        file.rename(kept)
        on_kept(kept)
    return file.open("w", encoding="utf-8")


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

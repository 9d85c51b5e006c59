"""Recordings: the changes that reached the scheduler and its decisions, a line of JSON each, for `replay.py`.

The first line has the configuration, and the feature gates that are not at their default. The line of a decision has
the draw among equals, that of a call of the cluster's API the answer: a replay needs neither the seed nor the cluster.
Values of annotations are masked, and only the owner may read the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from kubesched.api import well_known
from kubesched.api.change import Change
from kubesched.api.custom import CustomObject
from kubesched.api.device_claims import EXTENDED_RESOURCE_CLAIM
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration, to_plain, without_secrets
from kubesched.framework.client import ClientError, ClusterClient, SchedulerMode, WrappedClient
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.listener import SchedulerListener

FORMAT = "kubesched recording 2"

T = TypeVar("T")


class Recording(SchedulerListener):
    """An open recording. It listens to the scheduler that is recorded, which writes through a `RecordingClient`."""

    def __init__(
        self,
        stream: IO[str],
        configuration: SchedulerConfiguration,
        clock: Callable[[], float],
        *,
        with_annotations: bool = False,
        mode: SchedulerMode = SchedulerMode.PARITY,
        on_broken: Callable[[Exception], None] | None = None,
    ) -> None:
        """Values of annotations are masked, unless `with_annotations`: custom plugins may read them.

        `mode` is the scheduler's: the order of attempts depends on it.

        If the file cannot be written (a full disk), the recording ends and calls `on_broken` with the cause, since the
        scheduler must go on. Without an `on_broken` the cause is raised.
        """
        self._on_broken = on_broken
        self._is_over = False
        self._stream = stream
        self._clock = clock
        self._group_draws: dict[str, Any] = {}
        self.masked: Callable[[dict[str, Any]], dict[str, Any]] = dict if with_annotations else AnnotationMask()
        plain = to_plain(without_secrets(configuration))
        batched = {"sparesVainAttempts": True} if mode is SchedulerMode.BATCHED else {}
        features = configuration.features
        gates = {"release": features.release.name, "featureGates": features.changed}
        self._write({"format": FORMAT, "config": plain, **gates, **batched})

    def note(self, what: str, **details: Any) -> None:
        self._write({"t": float(self._clock()), "what": what, **details})

    def _note_attempt(self, what: str, attempt: Attempt, **details: Any) -> None:
        self.note(what, attempt=attempt.number, pod=attempt.queued.key, **details)

    def handling(self, change: Change[KubeObject]) -> None:
        before = {"old": self._plain(change.old)} if change.old is not None and change.new is not None else {}
        self.note(change.verb, **before, object=self._plain(change.obj))

    def flushing_backoff(self) -> None:
        self.note("flush_backoff")

    def flushing_leftovers(self) -> None:
        self.note("flush_leftovers")

    def activating(self, pod: Pod) -> None:
        self.note("activate", pod=pod.key)

    def popped(self, attempt: Attempt) -> None:
        self._note_attempt("pop", attempt)

    def group_decided(self, attempt: GroupAttempt) -> None:
        self._group_draws = {"draws": attempt.draws}

    def decided(self, attempt: Attempt) -> None:
        """The entry of the first pod of a group has the draws for all of them."""
        draws, self._group_draws = self._group_draws, {}
        self._note_attempt("decide", attempt, **described(attempt), **draws)

    def waiting(self, attempt: Attempt) -> None:
        self._note_attempt("wait", attempt)

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        self.note("permitted", pods=[attempt.queued.key for attempt in attempts])

    def finishing(self, attempt: Attempt) -> None:
        self._note_attempt("finish", attempt)

    def finished(self, attempt: Attempt) -> None:
        self._note_attempt("finished", attempt, outcome=attempt.outcome)

    def _plain(self, obj: KubeObject) -> dict[str, Any]:
        if isinstance(obj, CustomObject):
            return {"resource": obj.resource, "content": self.masked(obj.content)}
        return self.masked({**msgspec.to_builtins(obj), "kind": type(obj).__name__})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._is_over:
            return
        try:
            self._stream.write(msgspec.json.encode(entry).decode() + "\n")
        except Exception as error:
            if self._on_broken is None:
                raise
            self._is_over = True
            self._on_broken(error)


class RecordingClient(WrappedClient):
    """A client that notes every call: the verb, the object, what it writes, and the answer or the error."""

    def __init__(self, client: ClusterClient, recording: Recording) -> None:
        super().__init__(client)
        self._recording = recording

    async def _call(self, verb: str, obj: str, call: Coroutine[Any, Any, T], body: Any = None) -> T:
        entry = {"verb": verb, "object": obj, **({} if body is None else {"given": self._mask_values(body)})}
        try:
            answer = await call
        except ClientError as error:
            self._recording.note("call", **entry, error=[error.reason, str(error)])
            raise
        self._recording.note("call", **entry, **({} if answer is None else {"answer": self._mask_values(answer)}))
        return answer

    def _mask_values(self, value: Any) -> Any:
        return self._recording.masked(value) if isinstance(value, dict) else value


def open_recording(path: str, on_kept: Callable[[Path], None]) -> IO[str]:
    """An empty file for a recording, which only its owner may read.

    An earlier recording there, which may show why the process restarted, is renamed, and `on_kept` is called with the
    new name. A pipe or a device is opened as it is. Raises OSError.
    """
    file = Path(path)
    if file.is_file() and file.stat().st_size > 0:
        backup = next(other for i in count(1) if not (other := Path(f"{path}.{i}")).exists())
        file.rename(backup)
        on_kept(backup)
    return open_private(path)


def described(attempt: Attempt) -> dict[str, Any]:
    """The decision of an attempt, and its draw."""
    decision = attempt.decision
    return {
        "phase": attempt.state.phase,
        "node": attempt.node,
        "message": attempt.failure.message if attempt.failure else "",
        "victims": [victim.pod.key for victim in attempt.victims],
        "among": decision.draw.among if decision else 1,
        "drawn": decision.draw.drawn if decision else 0,
        **({"ran_out": True} if attempt.ran_out is not None else {}),
    }


READ_BY_SCHEDULING = frozenset(
    (
        well_known.BIND_COMPLETED,
        well_known.BOUND_BY_CONTROLLER,
        well_known.DEFAULT_STORAGE_CLASS,
        well_known.MIGRATED_PLUGINS,
        well_known.SELECTED_NODE,
        well_known.STORAGE_CLASS,
        EXTENDED_RESOURCE_CLAIM,
    )
)
"""Annotations that decisions depend on. They are not masked: a replay needs them."""


class AnnotationMask:
    """Puts a digest in the place of each value of an annotation.

    People keep passwords, webhooks and whole manifests in annotations. Digests still show that a value changed, which
    may requeue pods, and which pods have the same value. They are salted, so that nobody can guess the value.
    """

    def __init__(self) -> None:
        self._salt = os.urandom(16)

    def __call__(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object, as plain values, with its annotations masked."""
        annotations = (obj.get("metadata") or {}).get("annotations")
        if not annotations:
            return obj
        masked = {
            key: value if key in READ_BY_SCHEDULING else self._digest(value) for key, value in annotations.items()
        }
        return {**obj, "metadata": {**obj["metadata"], "annotations": masked}}

    def _digest(self, value: object) -> str:
        return "masked " + blake2b(str(value).encode(), digest_size=6, key=self._salt).hexdigest()


def open_private(path: str) -> IO[str]:
    """An empty text file that only its owner may read, whatever was there before. Raises OSError."""
    return open(path, "w", encoding="utf-8", opener=opened_for_owner)


def opened_for_owner(path: str, flags: int) -> int:
    """For `open`: a new file is its owner's alone."""
    descriptor = os.open(path, flags, 0o600)
    if os.path.isfile(path):  # not a pipe or a device, which keep their modes
        os.fchmod(descriptor, 0o600)
    return descriptor

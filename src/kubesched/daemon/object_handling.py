"""Between the watches and the scheduler: no object ends the daemon, whatever is wrong with it or with its handlers.

An object that cannot be read or handled is skipped, and reported in the log, in a metric and in an Event. It is handled
again when it changes, and whenever the cache is compared with the API server.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.change import Change
from kubesched.api.custom import CustomObject
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.errors import describe
from kubesched.kube.decoding import UnreadableObject
from kubesched.kube.event_record import EventReference, reference
from kubesched.kube.events import EventRecorder
from kubesched.kube.reflector import Handler

REASON, ACTION = "Skipped", "Handling"

log = Log(__name__)


class ObjectHandling:
    """Call it with every change. It never raises; `skipped` has the changes that the scheduler could not handle."""

    def __init__(
        self,
        handle: Handler[KubeObject],
        registry: MetricsRegistry,
        events: EventRecorder,
        *,
        may_record: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_record` says whether to write Events: a standby's would repeat the leader's."""
        self._handle = handle
        self._errors = registry.family("kubesched_handler_errors_total")
        self._events = events
        self._may_record = may_record
        self.skipped: dict[tuple[str, str], Change[KubeObject]] = {}
        """By kind and key, the change that the scheduler has not handled, or not wholly."""

    def __call__(self, change: Change[KubeObject]) -> None:
        if self.skipped and (missed := self.skipped.pop(_which(change), None)) is not None:
            change = _join_changes(missed, change)
        try:
            self._handle(change)
        except Exception as error:  # a mistake of ours or of a plugin: about this object, and no reason to stop
            kind, key = _which(change)
            self.skipped[kind, key] = change
            log.error("Failed to handle a change, the object is skipped", err=error, with_stack=True,
                      kind=kind, name=key, change=change.verb)  # fmt: skip
            record = KINDS.get(kind)
            about = None if record is None else reference(change.obj, record.resource.api_version, kind)
            self._report(kind, about, error)

    def unreadable(self, kind: str, obj: UnreadableObject) -> None:
        """Report an object of a list or a watch that cannot be read."""
        key, uid, _ = obj.identity
        log.error("Failed to read an object, it is skipped", err=obj.why, kind=kind, name=key)
        record, (namespace, _, name) = KINDS.get(kind), key.rpartition("/")
        about = None
        if record is not None and name:
            about = EventReference(record.resource.api_version, kind, namespace, name, uid)
        self._report(kind, about, obj.why)

    def look_again(self) -> None:
        """Handle once more what was skipped."""
        for change in list(self.skipped.values()):
            self(change)

    def _report(self, kind: str, about: EventReference | None, error: Exception) -> None:
        self._errors.child(kind).inc()
        if about is not None and self._may_record():
            note = f"The scheduler skips this object until it changes: {describe(error)}"
            self._events.record(about, type="Warning", reason=REASON, action=ACTION, note=note)


def _which(change: Change[KubeObject]) -> tuple[str, str]:
    """Kind and key of the object."""
    obj = change.obj
    return obj.resource if isinstance(obj, CustomObject) else type(obj).__name__, obj.key


def _join_changes(missed: Change[KubeObject], change: Change[KubeObject]) -> Change[KubeObject]:
    """Both as one: from what the scheduler last handled to what is now. It must hear of a deletion in any case."""
    if missed.old is None and change.new is None:
        return change
    return Change(missed.old, change.new)

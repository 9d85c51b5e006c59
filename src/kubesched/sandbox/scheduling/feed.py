"""What happens in the API, told to the scheduler as typed records, in order and never in the middle of a write."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

import msgspec

from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.kinds import SERVED, Object
from kubesched.scheduler.scheduler import Scheduler

_log = logging.getLogger(__name__)

WATCHED = tuple(resource for resource in SERVED if resource.kind in KINDS)
"""All that the scheduler looks at."""


class Feed:
    """Follows the API. `on_news` is called when there is something to `deliver`."""

    def __init__(self, api: Api, on_news: Callable[[], object]) -> None:
        self._unseen: deque[Event] = deque()
        self._known: dict[tuple[str, str, str], KubeObject] = {}
        self._on_news = on_news
        self._stop = api.subscribe(WATCHED, self._remember)

    def stop(self) -> None:
        """Hear no more."""
        self._stop()

    def deliver(self, scheduler: Scheduler, *, at_most: int) -> bool:
        """Tell what was not told yet. Whether there is more."""
        for _ in range(at_most):
            if not self._unseen:
                return False
            event = self._unseen[0]
            key = (event.resource.kind, *_name_of(event.object))
            old = self._known.pop(key, None)
            new = None if event.type == "DELETED" else _record(event)
            if new is not None:
                self._known[key] = new
            _tell(scheduler, old, new)
            self._unseen.popleft()  # only now: while there is something unseen, nobody needs to be called
        return bool(self._unseen)

    def _remember(self, event: Event) -> None:
        self._unseen.append(event)
        if len(self._unseen) == 1:
            self._on_news()


def _tell(scheduler: Scheduler, old: KubeObject | None, new: KubeObject | None) -> None:
    if old is not None and new is not None:
        if old.metadata.uid == new.metadata.uid:
            scheduler.updated(old, new)
            return
        scheduler.deleted(old)  # made anew under the same name
        scheduler.added(new)
    elif new is not None:
        scheduler.added(new)
    elif old is not None:
        scheduler.deleted(old)


def _record(event: Event) -> KubeObject | None:
    """The object as the scheduler sees it. Pods that have finished are none of its business any more."""
    try:
        record = msgspec.convert(event.object, KINDS[event.resource.kind])
    except msgspec.ValidationError as error:
        name = "/".join(filter(None, _name_of(event.object)))
        _log.error("%s %s cannot be read and is left out: %s", event.resource.kind, name, error)
        return None
    return None if isinstance(record, Pod) and record.is_finished else record


def _name_of(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]

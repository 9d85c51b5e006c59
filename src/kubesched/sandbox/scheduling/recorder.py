"""Events of the scheduler, as kubectl shows them: repeats are counted in a series instead of stored again."""

from __future__ import annotations

import logging
from collections import OrderedDict

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import EVENTS
from kubesched.api.pod import Pod
from kubesched.kube.event_record import EventSeries, micro_time, new_event, reference
from kubesched.sandbox.api import Api

log = logging.getLogger(__name__)

_SERIES_SECONDS = 360.0
"""A repeat after this time is a new event."""
_REMEMBERED = 4096
_HOST = "sandbox"

_Series = tuple[str, str, float, int]  # namespace, name, last seen, count


class SandboxEventRecorder:
    """Writes events to the API. People read them, so nothing depends on their getting there."""

    def __init__(self, api: Api, controller: str = "default-scheduler") -> None:
        self._api = api
        self._controller = controller
        self._latest = 0
        self._known: OrderedDict[tuple[str, ...], _Series] = OrderedDict()

    def record(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        key = (pod.uid, related.uid if related else "", type, reason, action, note)
        now = self._api.stamps.time()
        series = self._known.pop(key, None)
        if series is not None and now - series[2] < _SERIES_SECONDS and self._count(series, now):
            self._known[key] = (series[0], series[1], now, series[3] + 1)
            return
        controller = (related or pod).spec.scheduler_name or self._controller  # of who acts, not of the victim
        event = new_event(
            reference(pod, "v1", "Pod"),
            related=None if related is None else reference(related, "v1", "Pod"),
            type="Warning" if type == "Warning" else "Normal",
            reason=reason,
            action=action,
            note=note,
            controller=controller,
            instance=f"{controller}-{_HOST}",
            nanoseconds=self._moment(now),
        )
        try:
            self._api.create(EVENTS, pod.namespace, msgspec.to_builtins(event))
        except ApiError as error:  # most likely its namespace is on its way out
            log.warning("the event %s of pod %s was not recorded: %s", reason, pod.key, error)
            return
        self._known[key] = (pod.namespace, event.metadata.name, now, 1)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _moment(self, now: float) -> int:
        """In nanoseconds. Events are named after it, so none is used twice."""
        self._latest = max(int(now * 1e9), self._latest + 1)
        return self._latest

    def _count(self, series: _Series, now: float) -> bool:
        namespace, name, _, count = series
        patch = {"series": msgspec.to_builtins(EventSeries(count + 1, micro_time(now)))}
        try:
            self._api.patch(EVENTS, namespace, name, patch)
        except ApiError:
            return False
        return True

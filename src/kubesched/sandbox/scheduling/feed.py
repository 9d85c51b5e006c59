"""Hands changes in the API to the scheduler as typed records, in order and never in the middle of a write."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.change import Change
from kubesched.api.custom import read_custom
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, KINDS, WATCHED, Kind, Resource
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.kube.originals import Originals
from kubesched.sandbox.api import Api, ApiEvent
from kubesched.sandbox.store.memory import key_of
from kubesched.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

_RECORDS = {kind.resource: kind.record for kind in KINDS.values()}


class ApiInformer:
    """Follows the API. `on_news` is called when there is something to `deliver`."""

    def __init__(
        self,
        api: Api,
        on_news: Callable[[], object],
        *,
        kinds: Iterable[Kind] = WATCHED,
        custom: Iterable[str] = (),
        originals: Originals | None = None,
    ) -> None:
        """`kinds` are followed from the beginning.

        `custom` are resources that only plugins know, followed as soon as they are defined.

        `originals` gets objects whole.
        """
        self._api = api
        self._originals = originals
        self._undefined = set(custom)
        self._looks_for_definitions = False
        self._unseen: deque[ApiEvent] = deque()
        self._known: dict[tuple[str, str, str], KubeObject] = {}
        self._on_news = on_news
        self._stops = [api.subscribe(tuple(kind.resource for kind in kinds), self._remember)]
        if self._undefined:
            self._stops.append(api.subscribe((CUSTOM_RESOURCE_DEFINITIONS,), self._definition_changed))

    def stop(self) -> None:
        """End the subscriptions."""
        for stop in self._stops:
            stop()

    def _definition_changed(self, event: ApiEvent) -> None:
        """It is served only once this write has returned, so `deliver` looks at it."""
        self._looks_for_definitions = True
        self._on_news()

    def _follow_definitions(self) -> None:
        self._looks_for_definitions = False
        for resource in self._api.catalog.all():
            name = _custom_name(resource)
            if name in self._undefined:
                self._undefined.discard(name)
                self._stops.append(self._api.subscribe((resource,), self._remember))

    def deliver(self, scheduler: Scheduler, *, at_most: int) -> bool:
        """Hand over the changes that are waiting. Whether there are more."""
        if self._looks_for_definitions:
            self._follow_definitions()
        for _ in range(at_most):
            if not self._unseen:
                return False
            event = self._unseen[0]
            key = (event.resource.path, *key_of(event.object))
            old = self._known.pop(key, None)
            new = None if event.type == "DELETED" else _record(event)
            if new is not None:
                self._known[key] = new
                self._keep_original(new, event)
            if old is not None or new is not None:
                scheduler.handle(Change(old, new))
            if self._originals is not None and old is not None:
                self._originals.forget(old, new)
            self._unseen.popleft()  # only now: while there is something unseen, `on_news` need not be called
        return bool(self._unseen)

    def _keep_original(self, new: KubeObject, event: ApiEvent) -> None:
        """For extenders: they may read what the scheduler does not."""
        if self._originals is not None and self._originals.wants(new):
            metadata = {name: value for name, value in event.object["metadata"].items() if name != "managedFields"}
            header = {"apiVersion": event.resource.api_version, "kind": event.resource.kind}
            self._originals.keep(new, msgspec.json.encode({**header, **event.object, "metadata": metadata}))

    def _remember(self, event: ApiEvent) -> None:
        self._unseen.append(event)
        if len(self._unseen) == 1:
            self._on_news()


def _record(event: ApiEvent) -> KubeObject | None:
    """The object as the scheduler sees it. Pods that have finished are none of its business any more."""
    kind = _RECORDS.get(event.resource)
    try:
        if kind is None:
            return read_custom(_custom_name(event.resource), event.object)
        record = msgspec.convert(event.object, kind)
    except msgspec.ValidationError as error:
        name = "/".join(filter(None, key_of(event.object)))
        log.error("%s %s cannot be read and is left out: %s", event.resource.kind, name, error)
        return None
    return None if isinstance(record, Pod) and record.is_finished else record


def _custom_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.version}.{resource.group}"

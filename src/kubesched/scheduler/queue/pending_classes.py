"""An index of pending entities by the plugins that rejected them and by the keys that they wait for (`Lookup`).

It finds the classes that an event may help, without a look at every pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent, Interest, Lookup
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


class PendingClass(NamedTuple):
    """Pods that wait for the same events: they have these facts, and these plugins rejected or gate them."""

    scheduler_name: str
    facts: PodFacts | None
    """None for a pod group."""
    rejectors: frozenset[str]
    gating_plugin: str
    own_key: str
    """The key of an entity that is a class of its own: a pod group, or a pod whose name or status counts."""


Classes = dict[PendingClass, None]
Registered = Mapping[str, Sequence[Interest]]
"""By plugin, the interests that cover an event."""
PodsToRecheck = Callable[[str, str], Collection[str] | None]
"""By profile and PreEnqueue plugin, the keys of pods that an event may let pass; None if the plugin cannot tell."""


class PendingClassIndex:
    """All classes of pending entities, with the events that each plugin of each profile registered."""

    def __init__(self, state: ClusterState, interests: Mapping[str, Registered]) -> None:
        self._state = state
        self._interests = interests
        self._registered: dict[tuple[str, ClusterEvent], dict[str, list[Interest]]] = {}
        self._all: Classes = {}
        self._for_any_event: Classes = {}
        self._gated: dict[tuple[str, str], Classes] = {}
        self._rejected: dict[tuple[str, str], Classes] = {}
        self._by_token: dict[tuple[str, str, Lookup], dict[Hashable, Classes]] = {}
        self._tokens: dict[PendingClass, list[tuple[tuple[str, str, Lookup], Hashable]]] = {}

    def put(self, pending: PendingClass, pod: Pod | None) -> None:
        """Add a new class, by one of its pods. A gated group waits for the same as this gated member."""
        self._all[pending] = None
        profile = pending.scheduler_name
        is_group = pending.facts is None
        if pending.gating_plugin and (len(pending.rejectors) > 1 or (is_group and not self._is_looked_up(pending))):
            # Only events that its gate registered wake it, but then all plugins that rejected it are asked.
            self._gated.setdefault((profile, pending.gating_plugin), {})[pending] = None
            return
        if not pending.rejectors or profile not in self._interests:
            self._for_any_event[pending] = None
            return
        tokens = self._tokens[pending] = []
        for plugin in pending.rejectors:
            self._rejected.setdefault((profile, plugin), {})[pending] = None
            if pod is not None:
                for lookup in self._lookups(profile, plugin):
                    key = (profile, plugin, lookup)
                    tokens += [(key, token) for token in lookup.waits(pod, self._state)]
        for key, token in tokens:
            self._by_token.setdefault(key, {}).setdefault(token, {})[pending] = None

    def remove(self, pending: PendingClass) -> None:
        """The last pod of the class left."""
        del self._all[pending]
        profile = pending.scheduler_name
        self._for_any_event.pop(pending, None)
        _take(self._gated, (profile, pending.gating_plugin), pending)
        for plugin in pending.rejectors:
            _take(self._rejected, (profile, plugin), pending)
        for key, token in self._tokens.pop(pending, ()):
            if key in self._by_token:
                _take(self._by_token[key], token, pending)
                if not self._by_token[key]:
                    del self._by_token[key]

    def find(
        self, event: ClusterEvent, change: Change[Any], pods_to_recheck: PodsToRecheck
    ) -> tuple[Classes, list[str]]:
        """The classes that an event may help, by the plugins that registered it; and single pods, by key.

        Those where a PreEnqueue plugin names the pods to recheck: the others that it gates are left alone. Pods that
        are themselves the subject of the change are not among them.
        """
        if event.is_wildcard:
            return dict(self._all), []
        classes_found = dict(self._for_any_event)
        rechecked: list[str] = []
        for profile in self._interests:
            for plugin, interests in self.registered(profile, event).items():
                if gated := self._gated.get((profile, plugin)):
                    keys = pods_to_recheck(profile, plugin)
                    if keys is None:
                        classes_found.update(gated)
                    else:
                        rechecked += keys
                rejected = self._rejected.get((profile, plugin))
                if rejected:
                    for classes in self._may_be_helped(profile, plugin, interests, change, rejected):
                        classes_found.update(classes)
        return classes_found, rechecked

    def registered(self, profile: str, event: ClusterEvent) -> dict[str, list[Interest]]:
        """The plugins that registered such an event, with their interests. Found once per kind of event."""
        registered = self._registered.get((profile, event))
        if registered is None:
            registered = self._registered[profile, event] = {}
            for plugin, interests in self._interests[profile].items():
                if matching := [interest for interest in interests if interest.event.covers(event)]:
                    registered[plugin] = matching
        return registered

    def _may_be_helped(
        self, profile: str, plugin: str, interests: Sequence[Interest], change: Change[Any], rejected: Classes
    ) -> Iterator[Classes]:
        for interest in interests:
            tokens = None if interest.lookup is None else interest.lookup.brings(*change, self._state)
            if interest.lookup is None or tokens is None:
                yield rejected
                return
            by_token = self._by_token.get((profile, plugin, interest.lookup), {})
            for token in tokens if by_token else ():
                yield by_token.get(token, {})

    def _is_looked_up(self, pending: PendingClass) -> bool:
        """Whether each event that its gate registered has a Lookup."""
        interests = self._interests.get(pending.scheduler_name, {}).get(pending.gating_plugin, ())
        return all(interest.lookup is not None for interest in interests)

    def _lookups(self, profile: str, plugin: str) -> Iterator[Lookup]:
        for interest in self._interests[profile].get(plugin, ()):
            if interest.lookup is not None:
                yield interest.lookup


def _take(classes: dict[Any, Classes], key: Hashable, pending: PendingClass) -> None:
    members = classes.get(key)
    if members is not None and pending in members:
        del members[pending]
        if not members:
            del classes[key]

"""Groups of waiting pods, by who rejected them and by what they wait for: an event finds those that it may help."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent, Interest, Lookup
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


class Group(NamedTuple):
    """What pods in the pool have in common: their definition, who rejected them, who holds them back."""

    facts: PodFacts
    rejectors: frozenset[str]
    gating_plugin: str
    apart: str
    """The name of a pod that cannot be lumped together with others, since its name or its status matters too."""


Groups = dict[Group, None]
Registered = Mapping[str, Sequence[Interest]]
"""By plugin, what it waits for of what happened."""
OpenedBy = Callable[[str, str, Change[Any]], Collection[str] | None]
"""The pods by name for whom the gate of this profile and name may open when this happens; None if it cannot tell."""


class WaitingGroups:
    """All groups. Which plugins wait for what is by profile and plugin."""

    def __init__(self, state: ClusterState, interests: Mapping[str, Registered]) -> None:
        self._state = state
        self._interests = interests
        self._known: dict[tuple[str, ClusterEvent], dict[str, list[Interest]]] = {}
        self._all: Groups = {}
        self._for_any_event: Groups = {}
        self._gated: dict[tuple[str, str], Groups] = {}
        self._rejected: dict[tuple[str, str], Groups] = {}
        self._by_what: dict[tuple[str, str, Lookup], dict[Hashable, Groups]] = {}
        self._tokens: dict[Group, list[tuple[tuple[str, str, Lookup], Hashable]]] = {}

    def put(self, group: Group, pod: Pod | None) -> None:
        """A group of pods like this one is new; None if no one pod can tell what it waits for."""
        self._all[group] = None
        profile = group.facts.scheduler_name
        if group.gating_plugin and (pod is None or len(group.rejectors) > 1):
            # Only events that its gate waits for wake it, but then all who rejected it are asked.
            self._gated.setdefault((profile, group.gating_plugin), {})[group] = None
            return
        if not group.rejectors or profile not in self._interests:
            self._for_any_event[group] = None
            return
        tokens = self._tokens[group] = []
        for plugin in group.rejectors:
            self._rejected.setdefault((profile, plugin), {})[group] = None
            if pod is not None:
                for lookup in self._lookups(profile, plugin):
                    key = (profile, plugin, lookup)
                    tokens += [(key, token) for token in lookup.waits(pod, self._state)]
        for key, token in tokens:
            self._by_what.setdefault(key, {}).setdefault(token, {})[group] = None

    def remove(self, group: Group) -> None:
        """Its last pod left."""
        del self._all[group]
        profile = group.facts.scheduler_name
        self._for_any_event.pop(group, None)
        _take(self._gated, (profile, group.gating_plugin), group)
        for plugin in group.rejectors:
            _take(self._rejected, (profile, plugin), group)
        for key, token in self._tokens.pop(group, ()):
            if key in self._by_what:
                _take(self._by_what[key], token, group)
                if not self._by_what[key]:
                    del self._by_what[key]

    def find(self, event: ClusterEvent, change: Change[Any], opened_by: OpenedBy) -> tuple[Groups, list[str] | None]:
        """The groups with a plugin that registered such events and may be helped by this one.

        And pods by name, where a gate can tell for whom it may open: there is no need to ask all whom it holds back.
        Pods that are themselves the subject of the change are not looked for.
        """
        if event.is_wildcard:
            return dict(self._all), None
        found = dict(self._for_any_event)
        released: list[str] | None = None
        for profile in self._interests:
            for plugin, interests in self.registered(profile, event).items():
                if gated := self._gated.get((profile, plugin)):
                    opened = opened_by(profile, plugin, change)
                    if opened is None:
                        found.update(gated)
                    else:
                        released = [*(released or ()), *opened]
                rejected = self._rejected.get((profile, plugin))
                if rejected:
                    for groups in self._may_be_helped(profile, plugin, interests, change, rejected):
                        found.update(groups)
        return found, released

    def registered(self, profile: str, event: ClusterEvent) -> dict[str, list[Interest]]:
        """Plugins that registered such an event, with what they registered. Worked out once per kind of event."""
        known = self._known.get((profile, event))
        if known is None:
            known = self._known[profile, event] = {}
            for plugin, interests in self._interests[profile].items():
                if matching := [interest for interest in interests if interest.event.covers(event)]:
                    known[plugin] = matching
        return known

    def _may_be_helped(
        self, profile: str, plugin: str, interests: Sequence[Interest], change: Change[Any], rejected: Groups
    ) -> Iterator[Groups]:
        for interest in interests:
            brought = None if interest.lookup is None else interest.lookup.brings(*change, self._state)
            if interest.lookup is None or brought is None:
                yield rejected
                return
            by_token = self._by_what.get((profile, plugin, interest.lookup), {})
            for token in brought if by_token else ():
                yield by_token.get(token, {})

    def _lookups(self, profile: str, plugin: str) -> Iterator[Lookup]:
        for interest in self._interests[profile].get(plugin, ()):
            if interest.lookup is not None:
                yield interest.lookup


def _take(groups: dict[Any, Groups], key: Hashable, group: Group) -> None:
    found = groups.get(key)
    if found is not None and group in found:
        del found[group]
        if not found:
            del groups[key]

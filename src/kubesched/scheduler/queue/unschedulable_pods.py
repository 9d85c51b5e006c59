"""Entities that wait for an event, by key and by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.groups.queued_group import QueuedEntity
from kubesched.scheduler.queue.pending_classes import PendingClass, PendingClassIndex, PodsToRecheck
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses
from kubesched.state.cluster import ClusterState


class UnschedulablePods:
    """Entities by key, and by class."""

    def __init__(
        self,
        state: ClusterState,
        index: PendingClassIndex,
        classes: UnschedulableClasses,
    ) -> None:
        self._state = state
        self._index = index
        self._unschedulable_classes = classes
        self._entities: dict[str, tuple[QueuedEntity, PendingClass, Pod | None]] = {}
        self._classes: dict[PendingClass, tuple[int, dict[str, QueuedEntity]]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._entities)

    def __contains__(self, key: object) -> bool:
        return key in self._entities

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, those of groups among them."""
        return iter([queued for entity in self.entities() for queued in entity.queued_pods])

    def entities(self) -> list[QueuedEntity]:
        return [entity for entity, _, _ in self._entities.values()]

    def get(self, key: str) -> QueuedEntity | None:
        return self._entities[key][0] if key in self._entities else None

    def put(self, entity: QueuedEntity) -> None:
        """Add an entity, or find its new class after it changed."""
        pod = entity.lookup_pod
        pending = self._class_of(entity, pod)
        entry = self._entities.get(entity.key)
        # An entity with a class of its own may wait for something in its status, which is not part of its class.
        if entry is not None and entry[2] is not None and entry[1] == pending and not pending.own_key:
            self._state.facts.release(entry[2])  # most updates change no class
        else:
            self.remove(entity.key)
            if entry is not None and entry[1].facts is not pending.facts:
                entity.was_unschedulable = False  # its new version was never tried
        self._entities[entity.key] = (entity, pending, pod)
        if pod is not None and pending.facts is not None:
            self._state.facts.hold(pod, pending.facts)
        if pending not in self._classes:
            self._arrivals += 1
            self._classes[pending] = (self._arrivals, {})
            self._index.put(pending, entity.gated_pod)
        self._classes[pending][1][entity.key] = entity

    def _class_of(self, entity: QueuedEntity, pod: Pod | None) -> PendingClass:
        facts, own_key = None, entity.key
        if pod is not None:
            facts = self._state.facts(pod)
            is_alone = self._unschedulable_classes.is_alone(pod, entity.rejectors)
            own_key = entity.key if is_alone or any(queued.pending_plugins for queued in entity.queued_pods) else ""
        return PendingClass(entity.scheduler_name, facts, frozenset(entity.rejectors), entity.gating_plugin, own_key)

    def remove(self, key: str) -> QueuedEntity | None:
        entry = self._entities.pop(key, None)
        if entry is None:
            return None
        entity, pending, pod = entry
        if pod is not None:
            self._unschedulable_classes.mark_retryable(self._unschedulable_classes.class_of(pod))
            self._state.facts.release(pod)
        members = self._classes[pending][1]
        del members[key]
        if not members:
            del self._classes[pending]
            self._index.remove(pending)
        return entity

    def mark_unschedulable(self, key: str) -> None:
        """The pod of this key has just found no node. If it has a class of its own, that says nothing about others."""
        _, pending, pod = self._entities[key]
        if pending.facts is not None and pod is not None and not pending.own_key and not pending.gating_plugin:
            self._unschedulable_classes.mark_unschedulable(pod)

    def classes(self) -> list[tuple[PendingClass, dict[str, QueuedEntity]]]:
        """All classes with their entities, by key."""
        return [(pending, members) for pending, (_, members) in self._classes.items()]

    def awaiting(
        self, event: ClusterEvent, change: Change[Any], pods_to_recheck: PodsToRecheck
    ) -> list[dict[str, QueuedEntity]]:
        """The entities, by key, of all classes that an event may help or is about, in order of arrival.

        Of classes that are held back by a PreEnqueue plugin which names pods to recheck, only those.
        """
        if not self._classes:
            return []
        classes, rechecked = self._index.find(event, change, pods_to_recheck)
        for obj in change:
            if isinstance(obj, Pod) and (entry := self._entities.get(obj.key)) is not None:
                classes[entry[1]] = None
        members_by_class = {pending: self._classes[pending] for pending in classes}
        for key in rechecked:
            entry = self._entities.get(key)
            if entry is not None and (pending := entry[1]) not in classes and pending.gating_plugin:
                members_by_class.setdefault(pending, (self._classes[pending][0], {}))[1][key] = entry[0]
        return [members for _, members in sorted(members_by_class.values(), key=itemgetter(0))]


def subjects(change: Change[Any], entities: Mapping[str, QueuedEntity]) -> dict[str, QueuedEntity]:
    """The entities, by key, that a change is about."""
    return {
        obj.key: entity
        for obj in change
        if isinstance(obj, Pod) and (entity := entities.get(obj.key)) is not None and entity.identity == obj.identity
    }

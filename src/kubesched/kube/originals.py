"""Keeps objects whole, as the API server sent them: extenders may read fields that records leave out."""

from __future__ import annotations

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.config.configuration import ExtenderConfig

_Version = tuple[str, str, str]


class Originals:
    """The originals of those objects that extenders may have to see, each of the very version that the cache has.

    Informers keep an original before the scheduler handles its record, and forget it when the next one is handled.
    """

    def __init__(self, configuration: SchedulerConfiguration) -> None:
        extenders = [extender for extender in configuration.extenders if _sees_pods(extender)]
        self._scheduler_names = frozenset(profile.scheduler_name for profile in configuration.profiles)
        self._managed = tuple(managed_resources(extender) for extender in extenders)
        self._wants_nodes = any(_sees_nodes(extender) for extender in extenders)
        self._wants_victims = any(extender.preempt_verb and not extender.node_cache_capable for extender in extenders)
        self._kept: dict[_Version, msgspec.Raw] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def wants_any(self, kind: type[KubeObject]) -> bool:
        """Whether `wants` may be true of objects of this kind."""
        return (kind is Pod and bool(self._managed)) or (kind is Node and self._wants_nodes)

    def wants(self, obj: KubeObject) -> bool:
        """Whether an extender may see this object: a pod that waits for its profile, a node, a pod to evict."""
        if not isinstance(obj, Pod):
            return isinstance(obj, Node) and self._wants_nodes
        if obj.spec.node_name:
            return self._wants_victims
        return obj.spec.scheduler_name in self._scheduler_names and any(
            is_mentioned(names, obj) for names in self._managed
        )

    def keep(self, record: KubeObject, original: bytes) -> None:
        """`original` is the JSON of the object, with `apiVersion` and `kind`."""
        if record.metadata.resource_version:
            self._kept[_version(record)] = msgspec.Raw(original)

    def forget(self, old: KubeObject, new: KubeObject | None = None) -> None:
        """Forget the original of `old`, unless `new` is the same version."""
        version = _version(old)
        if new is None or _version(new) != version:
            self._kept.pop(version, None)

    def of(self, record: KubeObject) -> msgspec.Raw | None:
        """The original of exactly this version. There is none of a pod that is only assumed to be on its node."""
        return self._kept.get(_version(record))


def originals_for(configuration: SchedulerConfiguration) -> Originals | None:
    """None if no extender needs to see any object, which is so if there is no extender at all."""
    return Originals(configuration) if any(map(_sees_pods, configuration.extenders)) else None


def managed_resources(extender: ExtenderConfig) -> frozenset[str]:
    return frozenset(resource.name for resource in extender.managed_resources)


def is_mentioned(resources: frozenset[str], pod: Pod) -> bool:
    """Whether the pod wants one of the resources that an extender manages. No resources mean all pods."""
    amounts = (container.resources for container in (*pod.spec.containers, *pod.spec.init_containers))
    return not resources or any(not resources.isdisjoint((*each.requests, *each.limits)) for each in amounts)


def _sees_pods(extender: ExtenderConfig) -> bool:
    """Whether the extender gets pods: one that only binds gets their names."""
    return bool(extender.filter_verb or extender.prioritize_verb or extender.preempt_verb)


def _sees_nodes(extender: ExtenderConfig) -> bool:
    return not extender.node_cache_capable and bool(extender.filter_verb or extender.prioritize_verb)


def _version(record: KubeObject) -> _Version:
    meta = record.metadata
    return meta.uid, meta.resource_version, record.spec.node_name if isinstance(record, Pod) else ""

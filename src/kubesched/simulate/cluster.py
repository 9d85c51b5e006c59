"""The model of a cluster that questions are about: its state, its workloads, and an engine that decides on them.

Live clusters, which watches keep current, snapshots, manifests and the ends of simulations all have the same model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from kubesched.api.change import Change
from kubesched.api.device_claims import ResourceClaimTemplate
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.framework.budget import Budget, counting_looks
from kubesched.framework.engine import Engine
from kubesched.framework.extender import ignoring_managed_resources
from kubesched.framework.plugin import PluginContext, QueueSortPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.attempt.scheduling_cycle import Reserving
from kubesched.simulate.claims import claims_made_for, release_claims, templates_in
from kubesched.simulate.kinds import WORKLOADS, PodWorkload
from kubesched.simulate.workloads import as_owner, expand
from kubesched.state.cluster import ClusterState

K = TypeVar("K", bound=KubeObject)


def profiles_of(configuration: SchedulerConfiguration, plugins: Registry | None = None) -> dict[str, Profile]:
    """The profiles of a configuration by name, with all their plugins made; a ProfileError if they cannot be."""
    registry = all_plugins() if plugins is None else plugins
    context = PluginContext(features=configuration.features, now=time.time)
    return {config.scheduler_name: Profile(config, registry, context) for config in configuration.profiles}


class ClusterModel:
    """The objects of a cluster, and an engine that decides on them. Nothing is written to the cluster."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        configuration: SchedulerConfiguration,
        *,
        seed: int = 0,
        plugins: Registry | None = None,
        profiles: Mapping[str, Profile] | None = None,
        draw: Callable[[int], int] | None = None,
        budget: Budget | None = None,
        state: ClusterState | None = None,
    ) -> None:
        """`profiles` are those of the configuration, if they have been made already.

        `draw` chooses among equals, in the place of the seed; without a `budget` the work of a decision is limited, not
        its time. `state` is the cache of a scheduler at work, which keeps it current.
        """
        self.configuration = configuration
        self.plugins = plugins
        self.profiles = profiles or profiles_of(configuration, plugins)
        self.seed = seed
        self.state = ClusterState(configuration.features) if state is None else state
        self.engine = Engine(
            self.state,
            self.profiles.values(),
            draw=draw or random.Random(seed).randrange,
            percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score or 0,
            budget=budget or counting_looks(),
        )
        self.reserving = Reserving(self.state, self.profiles)
        self.pods: dict[str, Pod] = {}
        """All pods by `namespace/name`, in the order in which they were given."""
        self.templates: dict[str, ResourceClaimTemplate] = {}
        """ResourceClaimTemplates by `namespace/name`."""
        self.workloads: dict[tuple[type[KubeObject], str], PodWorkload] = {}
        """Workloads with their templates, by kind and `namespace/name`. The engine sees them as owners of pods."""
        self.observers: list[Callable[[Change[KubeObject]], None]] = []
        """Called with every change, before it is applied."""
        self.given = tuple(objects)
        """What the model was made from, in that order."""
        self._has_missing_pods = False
        self._load(self.given)

    @classmethod
    def with_missing_pods(
        cls,
        objects: Iterable[KubeObject],
        configuration: SchedulerConfiguration,
        *,
        seed: int = 0,
        plugins: Registry | None = None,
        profiles: Mapping[str, Profile] | None = None,
        draw: Callable[[int], int] | None = None,
        budget: Budget | None = None,
    ) -> ClusterModel:
        """The cluster once controllers have made the pods that workloads lack; those are pending."""
        existing, features = tuple(objects), configuration.features
        expansion = expand(existing, job_groups=features.job_groups, release=features.release)
        pods = [pod for series in expansion.series for pod in series.pods]
        model = cls(
            [*expansion.objects, *pods],
            configuration,
            seed=seed,
            plugins=plugins,
            profiles=profiles,
            draw=draw,
            budget=budget,
        )
        model.workloads = {(type(obj), obj.key): obj for obj in existing if isinstance(obj, PodWorkload)}
        model.given, model._has_missing_pods = existing, True
        return model

    @classmethod
    def of_scheduler(
        cls,
        state: ClusterState,
        pods: dict[str, Pod],
        configuration: SchedulerConfiguration,
        plugins: Registry | None = None,
    ) -> ClusterModel:
        """The cluster of a scheduler at work, with an engine and plugins of its own: asking draws no random numbers
        of the scheduler. Extenders are not asked, so the resources that they manage are left out."""
        model = cls((), ignoring_managed_resources(configuration), plugins=plugins, state=state)
        model.pods = pods
        return model

    def copy(self, objects: Iterable[KubeObject]) -> ClusterModel:
        """A model of its own, of what `objects` said earlier: another thread may have it."""
        make = self.with_missing_pods if self._has_missing_pods else type(self)
        return make(objects, self.configuration, plugins=self.plugins)

    def objects(self) -> tuple[KubeObject, ...]:
        """All objects there are now, pods where they are counted; where controllers would have made pods, without
        those. Records never change, so another thread may have them."""
        if self._has_missing_pods:
            return self.given
        nodes = (node for node in self.state.nodes.nodes if node is not None)
        other_objects = (
            obj for obj in self.state.objects if (WORKLOADS.get(type(obj).__name__), obj.key) not in self.workloads
        )
        return (*nodes, *other_objects, *self.workloads.values(), *map(self._as_counted, self.pods.values()))

    def _as_counted(self, pod: Pod) -> Pod:
        placed = self.state.placed(pod)
        return pod if placed is None else placed.pod

    def all(self, kind: type[K]) -> Collection[K]:
        """All objects of a kind, in their order."""
        if issubclass(kind, PodWorkload):
            return [obj for obj in self.workloads.values() if isinstance(obj, kind)]
        if kind is Node:
            return [node for node in self.state.nodes.nodes if isinstance(node, kind)]
        if kind is Pod:
            return [pod for pod in self.pods.values() if isinstance(pod, kind)]
        return self.state.objects.all(kind)

    def find(self, kind: type[KubeObject], name: str, namespace: str = "") -> KubeObject | None:
        """The object of this kind and name."""
        if issubclass(kind, PodWorkload):
            return self.workloads.get((kind, f"{namespace}/{name}"))
        if kind is Pod:
            return self.pods.get(f"{namespace}/{name}")
        if kind is Node:
            row = self.state.nodes.row_of.get(name)
            return None if row is None else self.state.nodes.nodes[row]
        return self.state.objects.get(kind, name, namespace)

    def _load(self, given: tuple[KubeObject, ...]) -> None:
        self.workloads = {(type(obj), obj.key): obj for obj in given if isinstance(obj, PodWorkload)}
        owners = (as_owner(obj) if isinstance(obj, PodWorkload) else obj for obj in given)
        objects = [obj for obj in owners if obj is not None]
        self.templates = templates_in(objects)
        objects = [self.with_claims(obj) if isinstance(obj, Pod) and not obj.spec.node_name else obj for obj in objects]
        self.pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
        # An API server lists by name, pods after what they stand on; the order decides between equals.
        for obj in sorted(objects, key=lambda obj: (isinstance(obj, Pod), obj.namespace, obj.name)):
            self.state.apply(obj)
        for pod in self.pending():
            if self.engine.knows(pod.spec.scheduler_name):
                self.state.groups.seen(pod)
            if pod.status.nominated_node_name:
                self.state.nominated.add(pod, pod.status.nominated_node_name)

    def handle(self, change: Change[KubeObject]) -> None:
        """Apply a change, as a watch reports it."""
        for observe in self.observers:
            observe(change)
        workload = change.obj
        if not isinstance(workload, PodWorkload):
            self._handle(change)
            return
        if change.new is None:
            self.workloads.pop((type(workload), workload.key), None)
        else:
            self.workloads[type(workload), workload.key] = workload
        owner = as_owner(workload)
        if owner is not None:
            self._handle(Change(owner, None) if change.new is None else Change(None, owner))

    def _handle(self, change: Change[KubeObject]) -> None:
        obj, is_gone = change.obj, change.new is None
        by_key: dict[str, Any] = {}
        if isinstance(obj, Pod):
            by_key = self.pods
        elif isinstance(obj, ResourceClaimTemplate):
            by_key = self.templates
        if isinstance(change.old, Pod) and not change.old.spec.node_name:
            self.state.groups.gone(change.old)
        if is_gone:
            self.state.delete(obj)
            by_key.pop(obj.key, None)
            return
        self.state.apply(obj)
        by_key[obj.key] = obj
        if isinstance(obj, Pod) and not obj.spec.node_name and not obj.is_finished:
            self._pending_pod_changed(obj)

    def _pending_pod_changed(self, pod: Pod) -> None:
        """The pod counts for its group, and on the node that it is nominated to, if a profile schedules it."""
        is_ours, node_name = self.engine.knows(pod.spec.scheduler_name), pod.status.nominated_node_name
        if is_ours:
            self.state.groups.seen(pod)
        if is_ours and node_name:
            self.state.nominated.add(pod, node_name)
        else:
            self.state.nominated.remove(pod)

    def with_claims(self, pod: Pod) -> Pod:
        """The pod as it is once the claims of its templates have been made."""
        pod, claims = claims_made_for(pod, self.templates)
        for claim in claims:
            self.state.apply(claim)
        return pod

    def pending(self) -> list[Pod]:
        """Pods that have no node yet, in the order of the queue: by QueueSort, those created first before others."""
        waiting = [pod for pod in self.pods.values() if waits(pod)]
        waiting.sort(key=created_at)
        sorter = next(iter(self.profiles.values())).at("queue_sort", QueueSortPlugin)[0]
        keys = {pod.key: sorter.sort_key(pod, float(i)) for i, pod in enumerate(waiting)}
        return sorted(waiting, key=lambda pod: keys[pod.key])

    def take_off_node(self, pod: Pod) -> Pod:
        """Remove the pod from its node, with its claims deallocated. Returns the pod as pending."""
        self.state.delete(pod)
        release_claims(pod, self.state)
        spec = msgspec.structs.replace(pod.spec, node_name="")
        status = msgspec.structs.replace(pod.status, phase="Pending", nominated_node_name="")
        return msgspec.structs.replace(pod, spec=spec, status=status)


def waits(pod: Pod) -> bool:
    """Whether the pod has no node and has not finished."""
    return not pod.spec.node_name and not pod.is_finished


def created_at(pod: Pod) -> float:
    """When the pod was created; infinity for a pod without creationTimestamp."""
    text = pod.metadata.creation_timestamp
    return datetime.fromisoformat(text).timestamp() if text else float("inf")

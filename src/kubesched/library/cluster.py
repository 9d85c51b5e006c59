"""A cluster from anywhere, and the questions to it as methods: what the commands answer, for programs and notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.release import NEWEST
from kubesched.ask.edits import (
    DrainNodes,
    Edit,
    FailNodes,
    RemoveNodes,
    RescheduleAll,
    UpgradeNodes,
    UseConfiguration,
    read_added,
    read_applied,
    read_scale,
)
from kubesched.ask.explain import explain
from kubesched.ask.pending import pending_pods
from kubesched.ask.releases.question import ReleaseQuestion, compare_settings
from kubesched.ask.sources.live import LiveCluster
from kubesched.ask.sources.reading import ClusterReading
from kubesched.ask.sources.snapshot import Snapshot, open_snapshot, write_snapshot
from kubesched.ask.targets import RequestObjects, find_pod
from kubesched.ask.trial import Trial
from kubesched.ask.what_if.what_if import what_if
from kubesched.config import SchedulerConfiguration
from kubesched.framework.decision import Decision
from kubesched.framework.profile import custom_resources
from kubesched.kube.connection import as_kubectl
from kubesched.library.builders import NodeBuilder, PodBuilder
from kubesched.library.results import (
    CapacityResult,
    ComparisonResult,
    ExplanationResult,
    PendingResult,
    PlacementResult,
    PlanResult,
    ReleaseComparisonResult,
    SimulationResult,
    WhatIfResult,
)
from kubesched.library.scheduler_options import SchedulerOptions, registry_of, settings_of
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.prices import read_prices
from kubesched.planning.question import PlanQuestion, plan_for
from kubesched.simulate.cluster import ClusterModel, profiles_of
from kubesched.simulate.manifests import load
from kubesched.simulate.placement import PlacementReport, by_outcome, capacity, model_of, schedule
from kubesched.simulate.report import SimulationReport, compare
from kubesched.simulate.simulation import Simulation

PATIENCE = 120.0
MOST_COPIES = 100_000

PodLike: TypeAlias = "str | Path | Pod | PodBuilder | Mapping[str, Any]"
"""A pod: `[namespace/][type/]name` of one that is there, a file, a record, a builder, or a manifest."""


class Cluster:
    """Nodes, pods, all else that scheduling looks at, and a scheduler. Questions change nothing; `schedule` does."""

    def __init__(
        self,
        nodes: Iterable[Node | NodeBuilder] = (),
        pods: Iterable[Pod | PodBuilder] = (),
        *,
        objects: Iterable[KubeObject] = (),
        **scheduler: Unpack[SchedulerOptions],
    ) -> None:
        """Built in place: `Cluster(nodes=[make_node("n1")])`. `objects` is whatever else there is in the cluster."""
        known = (*objects, *map(built_node, nodes), *map(built_pod, pods))
        self._set(known, settings_of(scheduler), scheduler)

    @classmethod
    def from_kubeconfig(
        cls, file: str = "", *, context: str = "", timeout: float = PATIENCE, **scheduler: Unpack[SchedulerOptions]
    ) -> Cluster:
        """The live cluster that kubectl would talk to, as it is now. It is read once, with get and list alone.

        Without a `config` the scheduler in charge is asked for its own. UserError if the cluster cannot be read.
        """
        settings = as_kubectl(file, context, os.environ)
        live = LiveCluster(settings, os.environ, name=f"context {context}" if context else "", timeout=timeout)

        def read() -> Cluster:
            with closing(live):
                return cls._read(live, scheduler)

        with ThreadPoolExecutor(max_workers=1) as thread:  # a notebook has an event loop at work in its own thread
            return thread.submit(read).result()

    @classmethod
    def from_snapshot(cls, file: str | Path, **scheduler: Unpack[SchedulerOptions]) -> Cluster:
        """A cluster that `kubesched snapshot` or `save` wrote to a file. Raises UserError."""
        snapshot = open_snapshot(str(file))
        if snapshot is None:
            raise UserError(f"{file}: expected a snapshot")
        return cls._read(snapshot, scheduler)

    @classmethod
    def _read(cls, source: LiveCluster | Snapshot, scheduler: SchedulerOptions) -> Cluster:
        configuration = source.configuration() if not scheduler.get("config") else None
        settings = settings_of(scheduler, configuration, source.version)
        reading = source.read(workloads=True, custom=_custom(settings, scheduler))
        cluster = cls._of(tuple(reading.records()), settings, scheduler)
        cluster._reading = reading
        cluster.notes = tuple(map(str, reading.unreadable))
        if configuration is not None:
            origin = configuration.origin if configuration.text else f"the defaults ({configuration.origin})"
            cluster.notes += (f"scheduler configuration: {origin}",)
        return cluster

    @classmethod
    def from_files(cls, *files: str | Path, **scheduler: Unpack[SchedulerOptions]) -> Cluster:
        """Manifests: files and directories, as people write them or as kubectl prints them. Raises UserError."""
        settings = settings_of(scheduler)
        manifests = load([str(file) for file in files], workloads=True, custom=_custom(settings, scheduler))
        cluster = cls._of(manifests.objects, settings, scheduler)
        cluster.notes += manifests.warnings
        return cluster

    @classmethod
    def _of(
        cls, objects: tuple[KubeObject, ...], settings: SchedulerConfiguration, scheduler: SchedulerOptions
    ) -> Cluster:
        cluster = cls.__new__(cls)
        cluster._set(objects, settings, scheduler)
        return cluster

    def _set(
        self, objects: tuple[KubeObject, ...], settings: SchedulerConfiguration, scheduler: SchedulerOptions
    ) -> None:
        self._seed = scheduler.get("seed", 0)
        self._plugins = registry_of(scheduler)
        self._model = ClusterModel.with_missing_pods(objects, settings, seed=self._seed, plugins=self._plugins)
        self._reading: ClusterReading | None = None
        self._read_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.notes: tuple[str, ...] = ()
        """What answers rest on: whose configuration it is, and which kinds could not be read, with what follows."""
        self.state = self._model.state

    # -- what there is ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._model.all(Node))

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods, also those that workloads have not made yet."""
        return tuple(self._model.pods.values())

    @property
    def objects(self) -> tuple[KubeObject, ...]:
        """All there is, as it was read, with the pods that `schedule` placed since."""
        return self._model.given

    @property
    def configuration(self) -> SchedulerConfiguration:
        return self._model.configuration

    def __repr__(self) -> str:
        waiting = len(self._model.pending())
        return f"<Cluster: {len(self.nodes)} nodes, {len(self._model.pods)} pods, {waiting} of them pending>"

    # -- questions ----------------------------------------------------------------------------------------------------

    def explain(self, pod: PodLike, *, remedies: bool = True) -> ExplanationResult:
        """Why a pod goes where it goes, or nowhere, and what would help. A pod that runs is explained as if it were
        pending; of a workload its next pod is. Raises UserError."""
        with Trial(self._model) as trial:
            subject = self._pod(pod, trial)
            return ExplanationResult(explain(self._model, trial.with_claims(subject), with_remedies=remedies))

    def pending(self, *, remedies: bool = True) -> PendingResult:
        """All pods that have no node: who would find one now, what the others wait for, in groups, and what helps."""
        return PendingResult(pending_pods(self._model.copy(self.objects), with_remedies=remedies))

    def place(self, pods: Iterable[PodLike] | None = None) -> PlacementResult:
        """Where these pods would go, one after another; all pending ones if none are given. Raises UserError."""
        with Trial(self._model) as trial:
            subjects = self._model.pending() if pods is None else [self._pod(pod, trial) for pod in pods]
            placed, unplaced = by_outcome(trial.place(pod) for pod in subjects)
            return PlacementResult(PlacementReport(self.state.nodes.live_count, self._seed, placed, unplaced))

    def capacity(self, pod: PodLike, *, most: int = MOST_COPIES) -> CapacityResult:
        """How many more copies of a pod fit beside those that run, and what stops the next one. Raises UserError."""
        with Trial(self._model) as trial:
            model = model_of(self._pod(pod, trial))
            assert model is not None
            return CapacityResult(capacity(self._model, model, most=most, place=trial.place))

    def what_if(
        self,
        *edits: Edit,
        drain: str | Sequence[str] = (),
        lose: str | Sequence[str] = (),
        gone: str | Sequence[str] = (),
        add: str | Sequence[str] = (),
        scale: Mapping[str, int] | None = None,
        apply: str | Path | Sequence[str | Path] = (),
        upgrade: str | Sequence[str] = (),
        anew: bool = False,
        config: str | Path = "",
    ) -> WhatIfResult:
        """What would be different. Nodes are named, or chosen by `key=value`.

        `add` is `3:like=node-7` or `3:file=node.yaml`, `scale` is `{"deployment/web": 10}`, `apply` names manifests,
        `anew` places all pods anew on both sides, `config` is the scheduler's configuration then. Raises UserError.
        """
        requested: list[Edit] = [RescheduleAll()] if anew else []
        requested += [read_applied(str(file), self.objects) for file in _listed(apply)]
        requested += [read_scale(f"{target}={count}") for target, count in (scale or {}).items()]
        requested += [read_added(str(text)) for text in _listed(add)]
        requested += [FailNodes(tuple(map(str, _listed(lose))))] if lose else []
        requested += [RemoveNodes(tuple(map(str, _listed(gone))))] if gone else []
        requested += [DrainNodes(tuple(map(str, _listed(drain))))] if drain else []
        requested += [UseConfiguration(self._settings(config))] if config else []
        requested += [UpgradeNodes(tuple(map(str, _listed(upgrade))))] if upgrade else []
        requested += edits
        outcome = what_if(self.objects, self.configuration, requested, seed=self._seed, plugins=self._plugins)
        return WhatIfResult(outcome.difference)

    def plan(
        self,
        goal: str,
        target: str = "",
        *,
        prices: str | Path | Sequence[str | Path] = (),
        nodes: int = 1,
        pool: str = "",
        selector: str = "",
        domain: str = "",
        max_moves: int | None = None,
        save: float | None = None,
        replace: bool = False,
        exempt: str | Sequence[str] = (),
        delete_emptydir_data: bool = False,
    ) -> PlanResult:
        """What to move or to buy, in which order, and how far from the best possible that is. Needs the extra `plan`.

        `goal` is `free` (empty `nodes` nodes of a `pool` or with the labels of `selector`, or whole values of the label
        `domain`, with `max_moves`), `fit` (make room for the pods of `target`, or for all that wait), `consolidate`
        (`save` percent; `replace` nodes, too), `pool` (the cheapest nodes to buy) or `queue`; `prices` names files.
        Raises UserError.
        """
        fields = {"goal": goal, "target": target, "nodes": nodes, "pool": pool, "selector": selector, "domain": domain}
        fields |= {"maxMoves": max_moves, "save": save, "replace": replace, "deleteEmptydirData": delete_emptydir_data}
        try:
            question = msgspec.convert({**fields, "exempt": [*map(str, _listed(exempt))]}, PlanQuestion)
        except msgspec.ValidationError as error:
            raise UserError(f"plan: {error}") from None
        listed = read_prices(map(str, _listed(prices))) if prices else None
        copy, search = self._model.copy(self.objects), PlanSearch(effort=question.effort, seed=self._seed)
        plan = plan_for(copy, question, search, prices=listed, observed_at=self._read_at)
        return PlanResult(plan, self._model)

    def simulate(self, *, config: str | Path = "", seed: int | None = None) -> SimulationResult:
        """All pods and workloads in virtual time, to the end, with preemption. Raises UserError."""
        settings = self._settings(config) if config else self.configuration
        report = self._simulated(settings, self._seed if seed is None else seed)
        return SimulationResult(report, str(config) if isinstance(config, Path) else "default")

    def compare(self, configs: Mapping[str, str | Path]) -> ComparisonResult:
        """The same under several configurations, by name: `{"packed": Path("packed.yaml"), "default": ""}`."""
        settings = [self._settings(config) if config else self.configuration for config in configs.values()]
        reports = [self._simulated(config, self._seed) for config in settings]
        return ComparisonResult(compare(list(configs), reports), reports, self._seed)

    def compare_releases(self, before: str = "", after: str = NEWEST.name) -> ReleaseComparisonResult:
        """What an upgrade changes: which pods are treated otherwise, by which change of Kubernetes, which settings.

        `before` is the release of the cluster if it is not given, or the one before that if it is compared with itself.
        Raises UserError.
        """
        releases = ReleaseQuestion(before, after).releases(self.configuration.features.release)
        comparison = compare_settings(self.objects, self.configuration, *releases, plugins=self._plugins)
        return ReleaseComparisonResult(comparison)

    def _settings(self, config: str | Path) -> SchedulerConfiguration:
        return settings_of({"config": config, "release": self.configuration.features.release.name})

    def _simulated(self, settings: SchedulerConfiguration, seed: int) -> SimulationReport:
        return Simulation(self.objects, settings, seed=seed, plugins=self._plugins).run()

    def save(self, file: str | Path) -> int:
        """Write a snapshot for `from_snapshot` and for `-f` of the commands. Its size in bytes. Raises UserError."""
        reading = self._reading
        if reading is None:
            by_kind: dict[str, tuple[KubeObject, ...]] = {}
            for obj in self.objects:
                by_kind[type(obj).__name__] = (*by_kind.get(type(obj).__name__, ()), obj)
            reading = ClusterReading("kubesched", by_kind)
        return write_snapshot(reading, str(file))

    # -- for tests of plugins -----------------------------------------------------------------------------------------

    def schedule(self, pod: Pod | PodBuilder) -> Decision:
        """Decide on a pod: `.node` is where it goes, and where it stands from now on; else `.message` says why not.

        PreEnqueue, all of the scheduling cycle, and Reserve are run; Permit and binding are not.
        """
        decision = schedule(self._model, self._model.with_claims(built_pod(pod)))
        placed = self.state.placed(decision.pod)
        if placed is not None:
            others = (obj for obj in self._model.given if not (isinstance(obj, Pod) and obj.key == placed.pod.key))
            self._model.given = (*others, placed.pod)
        return decision

    # -- what is asked about ------------------------------------------------------------------------------------------

    def _pod(self, pod: PodLike, trial: Trial) -> Pod:
        match pod:
            case Pod() | PodBuilder():
                return built_pod(pod)
            case Path():
                return self._pod_in(pod)
            case str():
                return find_pod(self._model, pod, trial=trial)
            case _:
                return RequestObjects(self._model).new_pod(dict(pod), "pod")

    def _pod_in(self, file: Path) -> Pod:
        models = [
            model for obj in read_applied(str(file), self.objects).objects if (model := model_of(obj)) is not None
        ]
        if len(models) != 1:
            raise UserError(f"{file}: expected one pod, or one workload with a pod template, got {len(models)}")
        return models[0]


def _custom(settings: SchedulerConfiguration, scheduler: SchedulerOptions) -> frozenset[str]:
    """The resources that matter only because plugins wait for them."""
    profiles = profiles_of(settings, registry_of(scheduler))
    return custom_resources(plugin for profile in profiles.values() for plugin in profile.plugins.values())


def _listed(values: str | Path | Sequence[str] | Sequence[str | Path]) -> Sequence[str | Path]:
    return [values] if isinstance(values, str | Path) else values


def built_pod(pod: Pod | PodBuilder) -> Pod:
    return pod.build() if isinstance(pod, PodBuilder) else pod


def built_node(node: Node | NodeBuilder) -> Node:
    return node.build() if isinstance(node, NodeBuilder) else node

"""Ask what if: simulate the cluster as it is, then with the edits of a command, a program or the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.workloads import Namespace
from kubesched.ask.edits import (
    MOST_NEW_NODES,
    MOST_NEW_PODS,
    MOST_NODES_NAMED,
    MOST_WEIGHT,
    AddNodes,
    AddNodesFromTemplate,
    ApplyObjects,
    DrainNodes,
    Edit,
    EditError,
    EditMistake,
    FailNodes,
    RemoveNodes,
    RescheduleAll,
    ScaleWorkload,
    SetWeight,
    UpgradeNodes,
    UseConfiguration,
    scale_of,
)
from kubesched.ask.hypothetical import ObjectSet, apply_hypothetical, node_names
from kubesched.ask.targets import QuestionRequest, RequestError, RequestObjects
from kubesched.ask.what_if.answer import ClusterOutcome, Upgraded, WhatIfAnswer, difference, outcome
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.simulate.kinds import PodWorkload, bare_namespace
from kubesched.simulate.rolling_upgrade import RollingUpgrade
from kubesched.simulate.simulation import Progress

Baselines = dict[bool, ClusterOutcome]
"""Outcomes without edits of one cluster, as it is and with all pods rescheduled: for several questions about it."""
_MOST_NAMED = 3

Nodes = Annotated[tuple[str, ...], msgspec.Meta(description="Nodes by name, or by a label `key=value`.")]


class WhatIfOutcome(NamedTuple):
    """Both ends of the cluster, and the difference between them."""

    before: ClusterOutcome
    after: ClusterOutcome
    difference: WhatIfAnswer


def what_if(
    objects: Iterable[KubeObject],
    configuration: SchedulerConfiguration,
    edits: Sequence[Edit],
    *,
    seed: int = 0,
    plugins: Registry | None = None,
    baselines: Baselines | None = None,
    progress: Progress | None = None,
) -> WhatIfOutcome:
    """The difference that edits make. RescheduleAll counts for both sides, so it makes none by itself.

    Raises EditError, and UserError where a simulation does not come to an end.
    """
    cluster, baselines = tuple(objects), {} if baselines is None else baselines
    reschedules = [edit for edit in edits if isinstance(edit, RescheduleAll)]
    edits = [edit for edit in edits if not isinstance(edit, RescheduleAll)]
    cluster = apply_hypothetical(cluster, reschedules)
    changed = apply_hypothetical(cluster, edits)
    new_configuration = configuration_with(configuration, edits)
    upgrades = [edit for edit in edits if isinstance(edit, UpgradeNodes)]
    operation = None
    if upgrades:
        nodes = {name for edit in upgrades for name in node_names(edit, ObjectSet(changed))}
        operation = RollingUpgrade(sorted(nodes), upgrades[0].pace)
    try:
        before = baselines.get(bool(reschedules))
        if before is None:
            before = outcome(cluster, configuration, seed=seed, plugins=plugins, progress=progress)
            baselines[bool(reschedules)] = before
        after = outcome(changed, new_configuration, seed=seed, plugins=plugins, upgrade=operation, progress=progress)
    except StillWaitingError as error:
        raise UserError(str(error)) from error
    upgraded = _upgrade_outcome(operation) if operation is not None else None
    return WhatIfOutcome(before, after, difference(before, after, [*map(str, edits)], seed=seed, upgrade=upgraded))


def _upgrade_outcome(operation: RollingUpgrade) -> Upgraded:
    replaced = tuple(operation.replaced)
    return Upgraded(max((node.ended for node in replaced), default=0.0), replaced, tuple(operation.forced))


def configuration_with(configuration: SchedulerConfiguration, edits: Iterable[Edit]) -> SchedulerConfiguration:
    """The configuration that is in force with the edits. EditError if a weight cannot be."""
    mistakes: list[EditMistake] = []
    for edit in edits:
        if isinstance(edit, UseConfiguration):
            configuration = edit.configuration
        elif isinstance(edit, SetWeight):
            if 1 <= edit.weight <= MOST_WEIGHT:
                configuration = _with_weight(configuration, edit)
            else:
                problem = f"expected a number from 1 to {MOST_WEIGHT}, got {edit.weight}"
                mistakes.append(EditMistake(edit, "", edit.plugin, problem))
    if mistakes:
        raise EditError(mistakes=mistakes)
    return configuration


def _with_weight(configuration: SchedulerConfiguration, edit: SetWeight) -> SchedulerConfiguration:
    profiles = []
    for profile in configuration.profiles:
        points = {}
        for point in ("score", "multi_point"):
            plugin_set = getattr(profile.plugins, point)
            enabled = (
                replace(plugin, weight=edit.weight) if plugin.name == edit.plugin else plugin
                for plugin in plugin_set.enabled
            )
            points[point] = replace(plugin_set, enabled=tuple(enabled))
        profiles.append(replace(profile, plugins=replace(profile.plugins, **points)))
    return replace(configuration, profiles=tuple(profiles))


# -- a question as a program or the page sends it ---------------------------------------------------------------------


class AddedNodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """New nodes like one that is there, by its name or `key=value`, or like a manifest."""

    like: str | dict[str, Any]
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_NEW_NODES)] = 1


class ScaledWorkload(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Another number of replicas of `[namespace/]type/name`: a deployment, replicaset or statefulset."""

    workload: str
    replicas: Annotated[int, msgspec.Meta(ge=0, le=MOST_NEW_PODS)]


class WhatIfQuestion(QuestionRequest, frozen=True, kw_only=True, rename={"objects": "with"}):
    """What would be different with these changes: who moves, who waits and why, who is evicted?"""

    objects: tuple[dict[str, Any], ...] = ()
    scale: tuple[ScaledWorkload, ...] = ()
    add: tuple[AddedNodes, ...] = ()
    lose: Nodes = ()
    gone: Nodes = ()
    drain: Nodes = ()
    anew: bool = False


class PageWhatIfQuestion(WhatIfQuestion, frozen=True, kw_only=True, rename={"objects": "with"}):
    """The same of the page, which can also set weights."""

    weights: dict[str, int] = {}
    """By score plugin, in every profile that has it."""
    group: str = ""
    """The label by which the maps are grouped."""


class RequestedEdits:
    """The edits that a question asks for, in the order of the command: what comes before what goes."""

    def __init__(self, question: WhatIfQuestion, objects: RequestObjects) -> None:
        """Manifests are read at once, with the classes that there are now. Raises RequestError."""
        self.edits: list[Edit] = [RescheduleAll()] if question.anew else []
        self._paths: dict[int, str] = {}
        self._lines: list[str] = []
        self._unreadable: list[str] = []
        self._is_of_page = isinstance(question, PageWhatIfQuestion)
        self._objects = objects
        self._read_all(question)
        if len(self.edits) == question.anew and not self._lines and not self._unreadable:
            self._lines.append("body: nothing is changed: give with, scale, add, lose, gone or drain")
        self._check_size(question)
        if self._lines:
            raise RequestError(*self._lines)

    def check(self, objects: Iterable[KubeObject]) -> None:
        """RequestError with all that is wrong with the edits, each line with the path of the field that asks for it.

        People at the page get EditError, in the words of the command.
        """
        mistakes: Sequence[EditMistake] = ()
        try:
            apply_hypothetical(objects, self.edits)
        except EditError as error:
            if self._is_of_page:
                raise
            mistakes = error.mistakes
        if lines := [*self._unreadable, *map(self._line, mistakes)]:
            raise RequestError(*lines)

    def _line(self, mistake: EditMistake) -> str:
        is_list = isinstance(mistake.edit, FailNodes | RemoveNodes | DrainNodes)
        field = mistake.field.removeprefix("nodes") if is_list else f".{mistake.field}" if mistake.field else ""
        return f"{self._paths[id(mistake.edit)]}{field}: {mistake.problem}"

    def _read_all(self, question: WhatIfQuestion) -> None:
        new = [self._read(value, f"with[{i}]") for i, value in enumerate(question.objects)]
        if question.objects:
            self._add(self._apply([obj for obj in new if obj is not None]), "with")
        for i, scaled in enumerate(question.scale):
            self._add(self._scale(scaled, f"scale[{i}].workload"), f"scale[{i}]")
        for i, added in enumerate(question.add):
            self._add(self._added(added, f"add[{i}].like"), f"add[{i}]")
        if question.lose:
            self._add(FailNodes(question.lose), "lose")
        if question.gone:
            self._add(RemoveNodes(question.gone), "gone")
        if question.drain:
            self._add(DrainNodes(question.drain), "drain")
        if isinstance(question, PageWhatIfQuestion):
            for plugin, weight in question.weights.items():
                self._add(SetWeight(plugin, weight), f"weights.{plugin}")

    def _add(self, edit: Edit | None, path: str) -> None:
        if edit is not None:
            self.edits.append(edit)
            self._paths[id(edit)] = path

    def _check_size(self, question: WhatIfQuestion) -> None:
        """The edits of a question are made before the first pod is tried, when no deadline stops them."""
        nodes = sum(request.count for request in question.add)
        if nodes > MOST_NEW_NODES:
            self._lines.append(f"add: expected at most {MOST_NEW_NODES:,} new nodes in all, got {nodes:,}")
        named = len(question.lose) + len(question.gone) + len(question.drain)
        if named > MOST_NODES_NAMED:
            self._lines.append(f"body: expected at most {MOST_NODES_NAMED:,} nodes and labels, got {named:,}")
        new = (obj for edit in self.edits if isinstance(edit, ApplyObjects) for obj in edit.objects)
        specs = [obj.spec for obj in new if isinstance(obj, PodWorkload)]
        pods = sum(request.replicas for request in question.scale)
        pods += sum(max(spec.replicas or 0, spec.parallelism or 0, spec.completions or 0) for spec in specs)
        if pods > MOST_NEW_PODS:
            self._lines.append(f"body: expected workloads of at most {MOST_NEW_PODS:,} pods in all, got {pods:,}")

    def _read(self, value: dict[str, Any], path: str) -> KubeObject | None:
        try:
            return self._objects.object(value, path, workloads=True)
        except RequestError as error:
            self._lines += error.lines
            return None

    def _apply(self, new: list[KubeObject]) -> ApplyObjects:
        """The new objects, with the namespaces that they need."""
        existing = {obj.name for obj in (*self._objects.cluster.all(Namespace), *new) if isinstance(obj, Namespace)}
        needed = dict.fromkeys(obj.namespace for obj in new if obj.namespace and obj.namespace not in existing)
        names = [f"{type(obj).__name__} {obj.key}" for obj in new]
        source = ", ".join(names) if len(names) <= _MOST_NAMED else f"{len(names)} objects"
        return ApplyObjects((*new, *map(bare_namespace, needed)), source)

    def _scale(self, scaled: ScaledWorkload, path: str) -> ScaleWorkload | None:
        edit = scale_of(scaled.workload, scaled.replicas)
        if edit is None:
            self._unreadable.append(
                f"{path}: expected [namespace/]type/name of a deployment, replicaset or statefulset"
            )
        return edit

    def _added(self, added: AddedNodes, path: str) -> AddNodes | AddNodesFromTemplate | None:
        if isinstance(added.like, str):
            return AddNodes(added.like, added.count)
        node = self._read({"apiVersion": "v1", "kind": "Node", **added.like}, path)
        if isinstance(node, Node):
            return AddNodesFromTemplate(node, added.count)
        if node is not None:
            self._lines.append(f"{path}.kind: expected a Node")
        return None

"""What if nodes were drained, lost or added, or weights were others: two maps, and who is treated otherwise and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.questions.what_if.answer import WhatIf
from kubesched.questions.what_if.change import Change, applied
from kubesched.questions.what_if.difference import difference
from kubesched.questions.what_if.node_changes import AddNodes, Anew, Drain, Lose
from kubesched.questions.what_if.outcome import Outcome, outcome
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.node_map import NodeMap, NodeMapModel

MOST_CHANGES = 2_000
MOST_ADDED = 10_000
MOST_WEIGHT = 100
_ROWS = 500
"""Of longer lists the first are shown; the file has all."""


class Added(msgspec.Struct):
    """So many nodes like one."""

    like: str
    count: int


class Question(msgspec.Struct):
    """What is to be different. Nodes are named, or meant by `key=value`."""

    drain: tuple[str, ...] = ()
    lose: tuple[str, ...] = ()
    add: tuple[Added, ...] = ()
    weights: dict[str, int] = {}
    """By score plugin, in every profile that has it."""
    anew: bool = False
    """Whether all pods are placed anew on both sides: weights matter only to pods that are being placed."""
    group: str = ""
    """The label by which the maps are grouped."""


class QuestionError(UserError):
    """A question that cannot be asked."""


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """The answer as the page shows it."""

    before: NodeMap
    after: NodeMap
    difference: WhatIf
    """Long lists are cut."""
    moved: int
    placed: int
    waiting: int
    gone: int
    evicted: int


class WhatIfAsking:
    """Asks about the objects of one moment. Pure, and slow in a large cluster."""

    def __init__(
        self, objects: tuple[KubeObject, ...], configuration: SchedulerConfiguration, plugins: Registry | None
    ) -> None:
        self._objects = objects
        self._configuration = configuration
        self._plugins = plugins
        self._before: dict[bool, Outcome] = {}
        """As it is, and with all pods placed anew."""

    def ask(self, question: Question) -> tuple[WhatIfView, WhatIf]:
        """The answer to show, and the whole of it. QuestionError, ChangeError."""
        changes, then = _changes(question), reweighted(self._configuration, question.weights)
        objects = applied(self._objects, [Anew()] if question.anew else [])
        try:
            before = self._before.get(question.anew)
            if before is None:
                before = self._before[question.anew] = outcome(objects, self._configuration, plugins=self._plugins)
            after = outcome(applied(objects, changes), then, plugins=self._plugins)
        except StillWaitingError as error:
            raise QuestionError(str(error)) from error
        weights = [f"weight of {name} {weight}" for name, weight in question.weights.items()]
        found = difference(before, after, [*map(str, changes), *weights])
        return _view(before, after, found, question.group), found


def reweighted(configuration: SchedulerConfiguration, weights: Mapping[str, int]) -> SchedulerConfiguration:
    """The configuration with other weights. QuestionError if one cannot be."""
    for name, weight in weights.items():
        if not 1 <= weight <= MOST_WEIGHT:
            raise QuestionError(f"weight of {name}: expected a number from 1 to {MOST_WEIGHT}, got {weight}")
    if not weights:
        return configuration
    profiles = []
    for profile in configuration.profiles:
        sets = {}
        for point in ("score", "multi_point"):
            known = getattr(profile.plugins, point)
            enabled = tuple(
                msgspec.structs.replace(plugin, weight=weights.get(plugin.name, plugin.weight))
                for plugin in known.enabled
            )
            sets[point] = msgspec.structs.replace(known, enabled=enabled)
        plugins = msgspec.structs.replace(profile.plugins, **sets)
        profiles.append(msgspec.structs.replace(profile, plugins=plugins))
    return msgspec.structs.replace(configuration, profiles=tuple(profiles))


def _changes(question: Question) -> list[Change]:
    named = len(question.drain) + len(question.lose) + len(question.add)
    if not named and not question.weights:
        raise QuestionError("nothing is changed: choose nodes to drain, to lose or to add, or other weights")
    if named > MOST_CHANGES:
        raise QuestionError(f"expected at most {MOST_CHANGES:,} nodes and labels, got {named:,}")
    found: list[Change] = []
    if question.drain:
        found.append(Drain(question.drain))
    if question.lose:
        found.append(Lose(question.lose))
    for added in question.add:
        if not 1 <= added.count <= MOST_ADDED:
            raise QuestionError(f"nodes like {added.like}: expected a number from 1 to {MOST_ADDED:,}")
        found.append(AddNodes(added.count, added.like))
    return found


def _view(before: Outcome, after: Outcome, found: WhatIf, group: str) -> WhatIfView:
    shown = replace(
        found,
        moved=found.moved[:_ROWS],
        placed=found.placed[:_ROWS],
        waiting=found.waiting[:_ROWS],
        gone=found.gone[:_ROWS],
        evictions=found.evictions[:_ROWS],
        workloads=found.workloads[:_ROWS],
    )
    return WhatIfView(
        before=_map(before, group),
        after=_map(after, group),
        difference=shown,
        moved=len(found.moved),
        placed=len(found.placed),
        waiting=len(found.waiting),
        gone=len(found.gone),
        evicted=sum(len(each.victims) for each in found.evictions),
    )


def _map(side: Outcome, group: str) -> NodeMap:
    state = ClusterState()
    for node in side.nodes.values():
        state.apply(node)
    for pod, _ in side.pods.values():
        if pod.spec.node_name:
            state.apply(pod)
    return NodeMapModel(state).whole(group)

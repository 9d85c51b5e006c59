"""What would help a pod that fits nowhere: remedies, and the changes of API objects that each consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.headroom import one_more
from kubesched.ask.trial import Trial, changed
from kubesched.framework.advice import ObjectEdit, RemedyKind, RemedyProposal
from kubesched.framework.cycle import CycleStateMissingError
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.decision_view import DecisionView
from kubesched.framework.engine import Engine
from kubesched.framework.errors import PluginError
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import UnplacedPod
from kubesched.state.columns import Int64

OUTSIDE = 1
"""The bit of rows that pre-filters left out, or that nominated pods or the lack of a node rule out."""


@dataclass(frozen=True, slots=True)
class JsonPatchOperation:
    """One operation of a JSON patch (RFC 6902): `add`, `replace` or `remove`."""

    op: str
    path: str
    value: Any | None = None


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One API object to be patched (JSON patch), created or deleted."""

    verb: str
    api_version: str
    kind: str
    namespace: str
    name: str
    patch: tuple[JsonPatchOperation, ...] | None = None
    object: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RemedyStep:
    """One change of a remedy in words."""

    sort: RemedyKind
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, or a pair of them, after which the pod finds a node: the engine was asked."""

    steps: tuple[RemedyStep, ...]
    node: str
    """Where the pod would go."""
    changes: tuple[ObjectChange, ...]
    cost: str = ""
    """Side effects of the change, in sentences."""
    touches: tuple[str, ...] = ()
    """The objects that change or go: `Node n1`, `workload shop/web`, `Pod shop/db-0`."""

    @property
    def text(self) -> str:
        first, *rest = (step.text for step in self.steps)
        return "; and ".join([first, *(text[0].lower() + text[1:] for text in rest)])

    @property
    def sentences(self) -> str:
        """The text, and the cost."""
        return f"{self.text}. {self.cost}".rstrip()


@dataclass(frozen=True, slots=True)
class Remedies:
    """All that was found for one pod, the smallest first."""

    pod: str
    found: tuple[Remedy, ...]
    tried: int
    """How many trials the engine decided."""
    exhaustive: bool
    """Whether every proposal was tried, so that an empty answer means that none helps."""


def changes_of(edits: Iterable[ObjectEdit]) -> tuple[Change[KubeObject], ...]:
    """The edits one after another, as a change per object."""
    current: dict[tuple[type[KubeObject], str], tuple[KubeObject | None, KubeObject | None]] = {}
    for edit in edits:
        if edit.obj is None:
            new_object = edit.make(None)
            assert new_object is not None
            current[type(new_object), new_object.key] = (None, new_object)
            continue
        place = type(edit.obj), edit.obj.key
        old, new = current.get(place, (edit.obj, edit.obj))
        current[place] = (old, None if new is None else edit.make(new))
    return tuple(Change(old, new) for old, new in current.values() if old != new)


def describe(change: Change[KubeObject]) -> ObjectChange:
    """The change as a program would carry it out."""
    obj = change.obj
    kind = obj.kind or type(obj).__name__
    resource = KINDS[kind].resource if kind in KINDS else None
    api_version = obj.api_version or (resource.api_version if resource else "")
    about = (api_version, kind, obj.namespace, obj.name)
    if change.new is None:
        return ObjectChange("delete", *about)
    new = msgspec.to_builtins(change.new)
    if change.old is None:
        return ObjectChange("create", *about, object={**new, "apiVersion": api_version, "kind": kind})
    return ObjectChange("patch", *about, patch=tuple(json_patch_between(msgspec.to_builtins(change.old), new)))


def json_patch_between(old: Any, new: Any, path: str = "") -> Iterator[JsonPatchOperation]:
    """The JSON patch that makes one object of another, for `kubectl patch --type json`. Elements of lists that stay
    are not repeated."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in old.items():
            inside = f"{path}/{_escape(key)}"
            if key not in new:
                yield JsonPatchOperation("remove", inside)
            else:
                yield from json_patch_between(value, new[key], inside)
        for key, value in new.items():
            if key not in old:
                yield JsonPatchOperation("add", f"{path}/{_escape(key)}", value)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _list_patch(list(old), list(new), path)
    elif old != new:
        yield JsonPatchOperation("replace", path, new)


def _list_patch(old: list[Any], new: list[Any], path: str) -> Iterator[JsonPatchOperation]:
    staying = [i for i, item in enumerate(old) if item in new]
    if len(new) == len(old):
        for i, (before, after) in enumerate(zip(old, new)):
            yield from json_patch_between(before, after, f"{path}/{i}")
    elif new[: len(old)] == old:
        yield from (JsonPatchOperation("add", f"{path}/-", item) for item in new[len(old) :])
    elif [old[i] for i in staying] == new:
        for i in reversed(range(len(old))):  # from the end, so that indexes stay what they are
            if i not in staying:
                yield JsonPatchOperation("remove", f"{path}/{i}")
    else:
        yield JsonPatchOperation("replace", path, new)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


class TrialOutcome(NamedTuple):
    """The outcome of a trial."""

    node: str
    """Where the pod would go; empty if nowhere."""
    blocked: Int64
    """Per row a bit for each plugin that rejects it."""
    new_row: int = -1
    """The row of a node that the changes added, while they lasted."""


class Trials:
    """Changes for one pending pod, tried one after another, until they are over."""

    def __init__(self, cluster: ClusterModel, pod: Pod, *, most: int, out_of_time: Callable[[], bool]) -> None:
        self.cluster = cluster
        self.state = cluster.state
        self.pod = pod
        self.tried = 0
        self._most = most
        self._out_of_time = out_of_time
        # An engine of its own: what it draws must not change what the cluster's engine draws later.
        self._engine = Engine(cluster.state, cluster.profiles.values(), draw=lambda among: 0)
        self._bits: dict[str, int] = {"": OUTSIDE}

    @property
    def are_over(self) -> bool:
        """Whether there may be no more."""
        return self.tried >= self._most or self._out_of_time()

    def fits(self, proposals: Iterable[RemedyProposal]) -> bool:
        """Whether the pod finds a node once these changes are made."""
        return bool(self.run(proposals, explain=False).node)

    def node_with(self, proposals: Iterable[RemedyProposal]) -> str:
        """Where the pod would go, Reserve included; empty if nowhere."""
        return self.run(proposals, explain=False, reserve=True).node

    def run(self, proposals: Iterable[RemedyProposal], *, explain: bool = True, reserve: bool = False) -> TrialOutcome:
        """The verdict on the cluster with these changes; `explain` also says what is in the way on every row."""
        pod, changes = self._changes(proposals)
        self.tried += 1
        with changed(self.cluster, changes):
            if self._engine.pre_enqueue(pod) is not None:
                return TrialOutcome("", self._everywhere(OUTSIDE))
            decision = self._engine.decide(_without_preemption(pod), explain=explain)
            added = next((c.obj.name for c in changes if c.old is None and isinstance(c.new, Node)), None)
            fits = decision.outcome is Outcome.SCHEDULED and (not reserve or self._can_reserve(decision))
            return TrialOutcome(
                decision.node if fits else "",
                self._rejections_by_row(decision) if explain else self._everywhere(0),
                -1 if added is None else self.state.nodes.row_of[added],
            )

    def new_nodes(self, proposals: Iterable[RemedyProposal], evicted: Sequence[Pod]) -> dict[str, str] | None:
        """Where evicted pods find a place that controllers make anew, once this pod has found its own; None if one of
        them finds none."""
        pod, changes = self._changes(proposals)
        nodes: dict[str, str] = {}
        with changed(self.cluster, changes) as trial:
            decision = self._engine.decide(_without_preemption(pod))
            if decision.outcome is not Outcome.SCHEDULED or not _reserves(trial, decision):
                return None
            for victim in evicted:
                outcome = trial.place(trial.with_claims(one_more(victim)))
                if isinstance(outcome, UnplacedPod):
                    return None
                nodes[victim.key] = outcome.node
        return nodes

    def decide(self, pod: Pod) -> Decision:
        """The decision for a pod as it is given, making room included."""
        self.tried += 1
        return self._engine.decide(pod, explain=True)

    def _changes(self, proposals: Iterable[RemedyProposal]) -> tuple[Pod, list[Change[KubeObject]]]:
        """The pod as these proposals would have it, and their changes of other objects."""
        changes = changes_of(edit for proposal in proposals for edit in proposal.edits)
        pod = next((change.new for change in changes if change.old is self.pod), self.pod)
        assert isinstance(pod, Pod)
        return pod, [change for change in changes if change.old is not self.pod]

    def _can_reserve(self, decision: Decision) -> bool:
        """Whether all plugins can set aside what the pod needs; nothing is set aside afterwards."""
        with Trial(self.cluster) as trial:
            return _reserves(trial, decision)

    def _rejections_by_row(self, decision: Decision) -> Int64:
        view = DecisionView(decision, self.cluster.profiles[decision.profile])
        return np.where(view.live, view.rejecting_plugins(self._bits), OUTSIDE)

    def _everywhere(self, bits: int) -> Int64:
        return np.full(self.state.nodes.size, bits, dtype=np.int64)


def _reserves(trial: Trial, decision: Decision) -> bool:
    """Whether all plugins can set aside what the pod needs; not where a point is off that a Reserve builds upon."""
    try:
        return trial.reserve(decision)
    except PluginError as error:
        if isinstance(error.cause, CycleStateMissingError):
            return False
        raise


def _without_preemption(pod: Pod) -> Pod:
    """The pod as one that evicts nobody: room that preemption makes is a remedy of its own."""
    return replace(pod, spec=replace(pod.spec, preemption_policy="Never"))

"""What would help a pod that fits nowhere: remedies, and the changes of API objects that each consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from kubesched.api.change import Change
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodSpec
from kubesched.questions.remedies.patches import Operation, json_patch_between


class Sort(Enum):
    """The sorts of remedies, those that cost least first."""

    PREEMPTION = "preemption"
    WAIT_FOR_PODS = "waitForPods"
    REMOVE_GATES = "removeSchedulingGates"
    PROVIDE_VOLUME = "provideVolume"
    RELEASE_CLAIM = "releaseClaim"
    UNCORDON = "uncordon"
    REQUEST_LESS = "requestLess"
    FEWER_DEVICES = "requestFewerDevices"
    TOLERATE = "tolerate"
    RELAX_SPREAD = "relaxSpread"
    REMOVE_TAINT = "removeTaint"
    LABEL_NODE = "labelNode"
    DROP_NODE_SELECTOR = "dropNodeSelector"
    DROP_NODE_AFFINITY = "dropNodeAffinity"
    DROP_SPREAD = "dropSpread"
    DROP_ANTI_AFFINITY = "dropPodAntiAffinity"
    DROP_AFFINITY = "dropPodAffinity"
    DROP_HOST_PORT = "dropHostPort"
    ADD_NODE = "addNode"
    EVICT = "evictPods"
    REQUEST_NONE = "requestNone"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {sort: rank for rank, sort in enumerate(Sort)}


class Edit(NamedTuple):
    """What becomes of one object: `make` is given the object, None for a new one, and answers None to delete it."""

    obj: KubeObject | None
    make: Callable[[Any], KubeObject | None]


def created(obj: KubeObject) -> Edit:
    """A new object."""
    return Edit(None, lambda _: obj)


class NewNode(NamedTuple):
    """One more node: of which pool, like which node, and in which zones it would help."""

    pool: str
    like: str
    zones: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        zones = f" in {' or '.join((', '.join(self.zones[:-1]), self.zones[-1]) if self.zones[1:] else self.zones)}"
        return f"Add a node to {self.pool}{zones if self.zones else ''}, like {self.like}"


@dataclass(frozen=True, eq=False)
class Option:
    """A change that may help, not tried yet."""

    sort: Sort
    text: str
    edits: tuple[Edit, ...]
    size: float = 0.0
    """Smaller ones of a sort go first."""
    about: str = ""
    """What it changes: two options about the same thing make no pair."""
    new: NewNode | None = None
    tune: Callable[[Callable[[Option], bool]], Option] | None = None
    """For a change that has a degree: the mildest that still does."""

    @property
    def cost(self) -> tuple[int, float]:
        return self.sort.rank, self.size


SpecEdit = Callable[[PodSpec], PodSpec]


def pod_option(pod: Pod, sort: Sort, text: str, edit: SpecEdit, *, size: float = 0.0, about: str = "") -> Option:
    """A change of what the pod asks for."""
    return Option(sort, text, (edited(pod, edit),), size=size, about=about or text)


def edited(pod: Pod, edit: SpecEdit) -> Edit:
    """The pod with another spec."""

    def make(current: Pod) -> Pod:
        return msgspec.structs.replace(current, spec=edit(current.spec))

    return Edit(pod, make)


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One API object to be patched (JSON patch), created or deleted."""

    verb: str
    api_version: str
    kind: str
    namespace: str
    name: str
    patch: tuple[Operation, ...] | None = None
    object: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a remedy in words."""

    sort: Sort
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, or a pair of them, after which the pod finds a node: the engine was asked."""

    steps: tuple[Step, ...]
    node: str
    """Where the pod would go."""
    changes: tuple[ObjectChange, ...]

    @property
    def text(self) -> str:
        first, *rest = (step.text for step in self.steps)
        return "; and ".join([first, *(text[0].lower() + text[1:] for text in rest)])


@dataclass(frozen=True, slots=True)
class Remedies:
    """All that was found for one pod, the smallest first."""

    pod: str
    found: tuple[Remedy, ...]
    tried: int
    """How many changed clusters the engine was asked about."""
    exhaustive: bool
    """Whether every change that was thought of could be tried, so that an empty answer means that none helps."""


def changes_of(edits: Iterable[Edit]) -> tuple[Change[KubeObject], ...]:
    """The edits one after another, as a change per object."""
    current: dict[tuple[type[KubeObject], str], tuple[KubeObject | None, KubeObject | None]] = {}
    for edit in edits:
        if edit.obj is None:
            made = edit.make(None)
            assert made is not None
            current[type(made), made.key] = (None, made)
            continue
        place = type(edit.obj), edit.obj.key
        old, new = current.get(place, (edit.obj, edit.obj))
        current[place] = (old, None if new is None else edit.make(new))
    return tuple(Change(old, new) for old, new in current.values() if old != new)


def described(changes: Sequence[Change[KubeObject]]) -> tuple[ObjectChange, ...]:
    """The changes as a program would carry them out."""
    return tuple(map(_described, changes))


def _described(change: Change[KubeObject]) -> ObjectChange:
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

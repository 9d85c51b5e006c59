"""What may happen in a cluster, and which plugins it may help: a pod that was rejected waits for such an event.

A plugin names the events that could turn its rejection into a pass, each with a hint that looks at the object as it
was and as it is. The queue tries a pod again only if the hint of a plugin that rejected it says QUEUE.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum, IntFlag, StrEnum, auto
from typing import Any, NamedTuple

from kubesched.api.kinds import KINDS
from kubesched.api.pod import Pod
from kubesched.state.cluster import ClusterState


class Action(IntFlag):
    """How an object changed. The names are those of kube-scheduler's metrics."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_SCALE_UP = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_SCALE_UP
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    ALL = ADD | DELETE | UPDATE

    @property
    def word(self) -> str:
        """The name in metrics, such as `UpdateNodeTaint`."""
        return "".join(part.title() for part in (self.name or "").split("_"))


class Kind(StrEnum):
    """What an event is about. Plugins register POD for all pods; an event is about a pod with a node, or one without.

    Of the latter v1.36 knows only PENDING_POD. v1.37 tells the pod that waits (TARGET_POD) from all others.
    """

    POD = KINDS["Pod"].event
    ASSIGNED_POD = "AssignedPod"
    PENDING_POD = "UnschedulablePod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    NODE = KINDS["Node"].event
    PERSISTENT_VOLUME = KINDS["PersistentVolume"].event
    PERSISTENT_VOLUME_CLAIM = KINDS["PersistentVolumeClaim"].event
    CSI_NODE = KINDS["CSINode"].event
    CSI_DRIVER = KINDS["CSIDriver"].event
    VOLUME_ATTACHMENT = KINDS["VolumeAttachment"].event
    CSI_STORAGE_CAPACITY = KINDS["CSIStorageCapacity"].event
    STORAGE_CLASS = KINDS["StorageClass"].event
    RESOURCE_CLAIM = KINDS["ResourceClaim"].event
    RESOURCE_SLICE = KINDS["ResourceSlice"].event
    DEVICE_CLASS = KINDS["DeviceClass"].event
    POD_GROUP = KINDS["PodGroup"].event
    NAMESPACE = KINDS["Namespace"].event
    ANY = "*"


POD_KINDS = (Kind.ASSIGNED_POD, Kind.PENDING_POD, Kind.UNSCHEDULED_POD, Kind.TARGET_POD)


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened, or that a plugin waits for."""

    kind: Kind | str
    """A kind that is known here, or a custom resource by its name: `racks.v1.example.com`."""
    action: Action
    name: str = ""
    """A name of its own, for events that are not about an object."""
    label: str = field(init=False, compare=False, repr=False)
    """The name in metrics and logs: `NodeUpdateNodeTaint`, `storage.k8s.io/CSINodeAdd`."""

    is_wildcard: bool = field(init=False, compare=False, repr=False)
    """Whether it wakes every pod without asking any plugin."""
    _hash: int = field(init=False, compare=False, repr=False)
    """Kept, because enums compute their hashes in Python, and the queue looks up every change by its event."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.name or str(self.kind) + self.action.word)
        object.__setattr__(self, "is_wildcard", self.kind is Kind.ANY and self.action == Action.ALL)
        object.__setattr__(self, "_hash", hash((self.kind, self.action, self.name)))

    def __hash__(self) -> int:
        return self._hash

    def covers(self, happened: ClusterEvent) -> bool:
        """Whether a plugin that registered this waits for what happened."""
        if self.is_wildcard:
            return True
        is_pod = self.kind is Kind.POD and happened.kind in POD_KINDS
        same_kind = is_pod or self.kind in (happened.kind, Kind.ANY)
        # An event of all updates is not covered by one kind of update, though they have a bit in common.
        return same_kind and bool(self.action & happened.action) and happened.action <= self.action


class Hint(Enum):
    """Whether an event may help a pod that a plugin rejected."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction = Callable[[Pod, Any, Any, ClusterState], Hint]
"""From the waiting pod, the object as it was (None if it is new), as it is (None if it is gone), and the cluster."""


class Lookup(NamedTuple):
    """How to find the waiting pods that an event may help, instead of asking the hint about each.

    QueueingHints asks the hint only about pods that wait for something that the event brings, and about a pod that is
    itself the object that changed.
    """

    waits: Callable[[Pod, ClusterState], Iterable[Hashable]]
    """The keys that a rejected pod may wait for. They must follow from the pod's definition."""
    brings: Callable[[Any, Any, ClusterState], Iterable[Hashable] | None]
    """The keys that an event brings, from the object as it was and as it is; None if it may bring any."""


@dataclass(frozen=True, slots=True)
class Interest:
    """An event that may help pods which a plugin rejected. Without a hint it always does."""

    event: ClusterEvent
    hint: HintFunction | None = None
    lookup: Lookup | None = None

"""A pod in the queue, what the queue keeps about every entity, and how long an entity backs off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kubesched.api.pod import Pod


class QueueEntry:
    """What the queue keeps about an entity, be it a pod or a pod group."""

    __slots__ = (
        "added",
        "backoff_until",
        "error_count",
        "flushed",
        "flushed_at",
        "identity",
        "key",
        "timestamp",
        "unschedulable_count",
        "was_unschedulable",
    )

    def __init__(self, key: str, identity: str, timestamp: float) -> None:
        self.key = key
        self.identity = identity
        self.added = timestamp
        """When it was first added."""
        self.timestamp = timestamp
        """When it was added, or last came back from a failed attempt: QueueSort plugins order by it."""
        self.unschedulable_count = 0
        """Attempts that ended with a rejection."""
        self.error_count = 0
        """Attempts in a row that ended with an error instead."""
        self.backoff_until: float | None = None
        self.flushed = False
        """Whether it was last woken only because it had waited too long."""
        self.flushed_at = 0.0
        self.was_unschedulable = False
        """Whether the last attempt failed because no node fits, so that one at an equal pod would fail as well.

        False again after an event about this pod alone, such as an update.
        """

    @property
    def backoff_stretch(self) -> float:
        """The factor by which its longest backoff is that of other entities."""
        return 1.0


class QueuedPod(QueueEntry):
    """A pending pod and the results of its attempts so far."""

    __slots__ = ("attempts", "first_tried", "gating_plugin", "pending_plugins", "pod", "unschedulable_plugins")

    def __init__(self, pod: Pod, timestamp: float) -> None:
        super().__init__(pod.key, pod.identity, timestamp)
        self.pod = pod
        self.attempts = 0
        self.first_tried: float | None = None
        """When the first attempt began, if it was measured."""
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""
        """The PreEnqueue plugin that holds the pod back."""

    @property
    def queued_pods(self) -> Collection[QueuedPod]:
        """The pods of the entity."""
        return (self,)

    @property
    def waiting_pods(self) -> Collection[QueuedPod]:
        """The pods whose plugins say whether an event may help the entity."""
        return (self,)

    @property
    def lookup_pod(self) -> Pod | None:
        """The pod whose class is that of the entity; None for a group."""
        return self.pod

    @property
    def gated_pod(self) -> Pod | None:
        """The pod by which the entity is found for an event, if it is gated."""
        return self.pod

    @property
    def sort_pod(self) -> Pod:
        """The pod by which a QueueSort plugin finds the place of the entity."""
        return self.pod

    @property
    def scheduler_name(self) -> str:
        return self.pod.spec.scheduler_name

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def rejectors(self) -> set[str]:
        """The plugins that rejected the pod or asked it to wait: their hints say whether an event wakes it."""
        return self.unschedulable_plugins | self.pending_plugins

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    def take_off(self) -> Sequence[QueuedPod]:
        """An attempt begins: the pods that are in flight now."""
        return (self,)


class Backoff:
    """How long entities wait after they failed: twice as long each time. If `longest` is 0, none waits."""

    def __init__(self, clock: Callable[[], float], initial: float, longest: float, *, by_the_second: bool) -> None:
        """`by_the_second` ends all backoffs of one second together, so that the queue's order decides among them."""
        self._clock = clock
        self._initial, self._longest = initial, longest
        self._by_the_second = by_the_second

    def until(self, queued: QueueEntry) -> float:
        """The moment until which the entity must wait; 0 if it need not."""
        failures = queued.error_count or queued.unschedulable_count
        if not failures or not self._longest:
            return 0.0
        if queued.backoff_until is None:
            delay = min(self._initial * 2 ** min(failures - 1, 62), self._longest * queued.backoff_stretch)
            queued.backoff_until = self._align(queued.timestamp + delay)
        return queued.backoff_until

    def is_under_way(self, queued: QueueEntry) -> bool:
        until = self.until(queued)
        return until > 0 and until >= self._align(self._clock())

    def _align(self, time: float) -> float:
        return float(time // 1) if self._by_the_second else time

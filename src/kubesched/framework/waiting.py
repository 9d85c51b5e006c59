"""Pods that a Permit plugin asked to wait: assumed on their node, not bound until allowed, rejected or timed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from operator import itemgetter

from kubesched.api.duration import Duration
from kubesched.api.pod import Pod
from kubesched.framework.status import Status, error, unschedulable

LONGEST_WAIT = 15 * 60.0
"""Seconds that a plugin may ask for at most."""
_MOST_STALE = 64
"""Deadlines of settled pods stay in the heap until they are due, or are most of it and more than these."""


class WaitingPod:
    """One pod and the plugins that have yet to allow it."""

    def __init__(
        self,
        pod: Pod,
        node_name: str,
        timeouts: dict[str, float],
        since: float,
        on_settled: Callable[[], None],
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self._timeouts = timeouts
        self._since = since
        self._on_settled = on_settled
        self.refusal: Status | None = None
        """Why the pod must not be bound: a rejection, or an error if it was preempted."""

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that the pod still waits for."""
        return list(self._timeouts)

    @property
    def patience(self) -> float:
        """Seconds from the beginning until the first of them has taken too long."""
        return min(self._timeouts.values(), default=0.0)

    @property
    def deadline(self) -> float:
        """When that is, by the clock of `WaitingPods`."""
        return self._since + self.patience

    @property
    def is_settled(self) -> bool:
        return self.refusal is not None or not self._timeouts

    def allow(self, plugin: str) -> None:
        """The plugin has no more objections. After a rejection that changes nothing."""
        if self.is_settled:
            return
        self._timeouts.pop(plugin, None)
        if not self._timeouts:
            self._on_settled()

    def reject(self, plugin: str, reason: str) -> bool:
        """The pod must not be bound. False if it was settled before."""
        return self._refuse(unschedulable(reason).by(plugin))

    def preempt(self, plugin: str, reason: str) -> bool:
        """The pod must give way to another. No plugin rejected it, so it is tried again soon."""
        return self._refuse(error(reason).by(plugin))

    def _refuse(self, status: Status) -> bool:
        if self.is_settled:
            return False
        self.refusal = status
        self._on_settled()
        return True

    def expire(self, now: float) -> None:
        """A plugin that has not answered in time has rejected the pod."""
        plugin, timeout = min(self._timeouts.items(), key=lambda item: item[1], default=("", LONGEST_WAIT))
        if plugin and now >= self._since + timeout:
            self.reject(plugin, f"rejected due to timeout after waiting {Duration(timeout)} at plugin {plugin}")


class WaitingPods:
    """All waiting pods. Plugins find them in their context, to allow or to reject them.

    `settled` looks only at pods that were settled or whose time is up, however many wait.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0, on_settled: Callable[[], None] = lambda: None) -> None:
        """`on_settled` is called when a pod need not wait any longer."""
        self._clock = clock
        self._on_settled = on_settled
        self._pods: dict[str, WaitingPod] = {}
        self._added = 0
        self._settled: list[tuple[int, WaitingPod]] = []
        self._deadlines: list[tuple[float, int, WaitingPod]] = []

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, pod: Pod) -> WaitingPod | None:
        return self._pods.get(pod.identity)

    def add(self, pod: Pod, node_name: str, timeouts: dict[str, float]) -> WaitingPod:
        """Begin to wait for plugins, each at most so many seconds."""
        capped = {plugin: min(seconds, LONGEST_WAIT) for plugin, seconds in timeouts.items()}
        self._added = number = self._added + 1

        def on_settled() -> None:
            self._settled.append((number, waiting))
            self._on_settled()

        waiting = WaitingPod(pod, node_name, capped, self._clock(), on_settled)
        self._pods[pod.identity] = waiting
        heappush(self._deadlines, (waiting.deadline, number, waiting))
        return waiting

    def settled(self) -> list[WaitingPod]:
        """Remove the pods that were allowed, rejected or timed out: those first that began to wait first."""
        self._expire()
        settled, self._settled = self._settled, []
        settled.sort(key=itemgetter(0))
        for _, waiting in settled:
            del self._pods[waiting.pod.identity]
        if len(self._deadlines) > 2 * len(self._pods) + _MOST_STALE:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].is_settled]
            heapify(self._deadlines)
        return [waiting for _, waiting in settled]

    def _expire(self) -> None:
        now = self._clock()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, number, waiting = heappop(self._deadlines)
            if waiting.is_settled:
                continue
            waiting.expire(now)
            if not waiting.is_settled:  # the plugin with this deadline has allowed it; others have later ones
                heappush(self._deadlines, (waiting.deadline, number, waiting))

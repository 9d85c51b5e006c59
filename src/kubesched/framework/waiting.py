"""Pods that a Permit plugin asked to wait: assumed on their node, not bound until allowed, rejected or timed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubesched.api.pod import Pod
from kubesched.framework.status import Status, unschedulable
from kubesched.state.nominated import identity_of

LONGEST_WAIT = 15 * 60.0
"""Seconds that a plugin may ask for at most."""


class WaitingPod:
    """One pod and the plugins that have yet to allow it."""

    def __init__(
        self, pod: Pod, node_name: str, deadlines: dict[str, float], on_settled: Callable[[], None] = lambda: None
    ) -> None:
        self.pod = pod
        self.node_name = node_name
        self._deadlines = deadlines
        self._on_settled = on_settled
        self.rejection: Status | None = None

    @property
    def pending_plugins(self) -> list[str]:
        """The plugins that the pod still waits for."""
        return list(self._deadlines)

    @property
    def is_settled(self) -> bool:
        return self.rejection is not None or not self._deadlines

    def allow(self, plugin: str) -> None:
        """The plugin has no more objections."""
        if self._deadlines.pop(plugin, None) is not None and self.is_settled:
            self._on_settled()

    def reject(self, plugin: str, reason: str) -> None:
        """The pod must not be bound. The first word counts."""
        if not self.is_settled:
            self.rejection = unschedulable(reason).by(plugin)
            self._on_settled()

    def expire(self, now: float) -> None:
        """Whoever has not answered in time has rejected the pod."""
        for plugin, deadline in self._deadlines.items():
            if now >= deadline:
                self.reject(plugin, "timeout")


class WaitingPods:
    """All waiting pods. Plugins find them in their context, to allow or to reject them."""

    def __init__(self) -> None:
        self._clock: Callable[[], float] = lambda: 0.0
        self.on_settled: Callable[[], None] = lambda: None
        """Called when a pod need not wait any longer, so that nobody has to look again and again."""
        self._pods: dict[str, WaitingPod] = {}

    def use_clock(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, pod: Pod) -> WaitingPod | None:
        return self._pods.get(identity_of(pod))

    def add(self, pod: Pod, node_name: str, timeouts: dict[str, float]) -> WaitingPod:
        """Begin to wait for plugins, each at most so many seconds."""
        now = self._clock()
        deadlines = {plugin: now + min(seconds, LONGEST_WAIT) for plugin, seconds in timeouts.items()}
        waiting = self._pods[identity_of(pod)] = WaitingPod(pod, node_name, deadlines, lambda: self.on_settled())
        return waiting

    def settled(self) -> list[WaitingPod]:
        """Pods whose wait is over, one way or the other; they are waiting no more."""
        now = self._clock()
        over = []
        for identity, waiting in list(self._pods.items()):
            waiting.expire(now)
            if waiting.is_settled:
                del self._pods[identity]
                over.append(waiting)
        return over

"""What another scheduler decides, as far as a watch shows it: bindings, nominations, and why pods wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.scheduler.listener import SchedulerListener
from kubesched.ui.model.decisions import DecisionEntry, EntryLog
from kubesched.ui.model.observed import waits

_SCHEDULED = "PodScheduled"


class SeenDecisions(EntryLog, SchedulerListener):
    """Notes what changes of pods amount to, and keeps count of those that wait. Lists are not news, watches are."""

    def __init__(self, clock: Callable[[], float], pods: Iterable[Pod] = ()) -> None:
        """`pods` are those that there are already."""
        super().__init__(clock)
        self._waiting = {pod.key: pod for pod in pods if waits(pod)}

    def without_node(self) -> Iterator[Pod]:
        """Pods that have no node, now."""
        return iter(tuple(self._waiting.values()))

    def handling(self, change: Change[KubeObject]) -> None:
        match change:
            case Change(Pod() as old, None):
                self.forget(old.key)
                self._waiting.pop(old.key, None)
            case Change(old, Pod() as new):
                if waits(new):
                    self._waiting[new.key] = new
                else:
                    self._waiting.pop(new.key, None)
                if isinstance(old, Pod):
                    self._compare(old, new)

    def _compare(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name:
            if not old.spec.node_name:
                self._see(new, "bound", new.spec.node_name, f"bound by {new.spec.scheduler_name}")
            return
        nominated, message = new.status.nominated_node_name, why_unscheduled(new)
        if nominated and nominated != old.status.nominated_node_name:
            self._see(new, "preempts", nominated, f"room is being made on {nominated}")
        elif message and message != why_unscheduled(old):
            self._see(new, "unschedulable", "", message)

    def _see(self, pod: Pod, outcome: str, node: str, text: str) -> None:
        attempt = len(self.of(pod.key)) + 1
        entry = DecisionEntry(self.number + 1, self._clock(), pod.key, pod.priority, outcome, node, text, attempt)
        self.note(pod.key, outcome, entry)


def why_unscheduled(pod: Pod) -> str:
    """What the scheduler in charge last said about a pod that it could not place."""
    for condition in pod.status.conditions:
        if condition.type == _SCHEDULED and condition.status == "False":
            return condition.message or condition.reason
    return ""

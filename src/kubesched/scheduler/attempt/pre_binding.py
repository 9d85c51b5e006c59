"""What is done before a pod is bound may take long. Until it is done, the pod can be stopped instead of deleted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kubesched.api.pod import Pod


@dataclass(slots=True)
class Work:
    """What is being done for one pod, by which plugin, and why it was stopped, if it was."""

    task: asyncio.Task[None]
    plugin: str
    stopped: str = ""


class PreBinding:
    """The work that is under way. Without an event loop there is none, for nothing takes any time then."""

    def __init__(self) -> None:
        self._under_way: dict[str, Work] = {}

    def begin(self, pod: Pod, plugin: str) -> None:
        """In the task that does it: a plugin is about to do something that may take a while."""
        task = _current_task()
        if task is not None:
            self._under_way[pod.identity] = Work(task, plugin)

    def stop(self, pod: Pod, reason: str) -> bool:
        """Break off the work for a pod; whether there is any."""
        work = self._under_way.get(pod.identity)
        if work is None:
            return False
        if not work.stopped:
            work.stopped = reason
            work.task.cancel()
        return True

    def end(self, pod: Pod) -> Work | None:
        """In the same task: the work is over. It is returned if it was stopped."""
        work = self._under_way.pop(pod.identity, None)
        if work is None or not work.stopped:
            return None
        work.task.uncancel()
        return work


def _current_task() -> asyncio.Task[None] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None

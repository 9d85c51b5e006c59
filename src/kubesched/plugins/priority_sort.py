"""PrioritySort: pods of higher priority go first, then those that have waited longer."""

from __future__ import annotations

from typing import Any

from kubesched.api.pod import Pod
from kubesched.framework.plugin import QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """The order of the queue."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        return -pod.priority, queued_at

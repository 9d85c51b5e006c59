"""Pods that an event did not wake because their gate could tell that it stays shut: for those who want to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.queue.hints import QueueingHints
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods
from kubesched.scheduler.queue.waiting_groups import OpenedBy


def passed_over(
    unschedulable: UnschedulablePods,
    hints: QueueingHints,
    opened_by: OpenedBy,
    event: ClusterEvent,
    change: Change[Any],
    concerns: Callable[[Pod], bool] | None,
) -> Iterator[QueuedPod]:
    """Those who would have been woken, and held back again, if the gate had been asked for each of them."""
    waiting, _ = unschedulable.awaiting(event, change, _asked_for_each)
    for members in waiting:
        first = next(iter(members.values()))
        opened = opened_by(first.pod.spec.scheduler_name, first.gating_plugin, change)
        if opened is not None and hints.strategy(first, event, change):
            held = (queued for key, queued in members.items() if key not in opened)
            yield from held if concerns is None else (queued for queued in held if concerns(queued.pod))


def _asked_for_each(profile: str, plugin: str, change: Change[Any]) -> None:
    return None

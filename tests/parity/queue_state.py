"""Where every pod is, and what the queue remembers of it: the STATE of the recordings."""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.scheduler import Scheduler

Json = dict[str, Any]

_WITH_EXPIRY = ("active", "backoff", "errorBackoff", "unschedulable")


def describe(scheduler: Scheduler, now: float, waiting_for_bind: list[Attempt]) -> Json:
    """The STATE now; what is empty is absent."""
    queue = scheduler.queue
    places = {
        "active": queue.active(),
        "backoff": queue.backoff(),
        "errorBackoff": sorted(queue.error_backoff(), key=lambda q: (queue.backoff_until(q), q.pod.key)),
        "unschedulable": [queued for queued in _by_name(queue.unschedulable()) if not queued.gating_plugin],
        "gated": [queued for queued in _by_name(queue.unschedulable()) if queued.gating_plugin],
        "inFlight": queue.in_flight(),
    }
    state: Json = {}
    pods: Json = {}
    for place, entries in places.items():
        names: list[str] = []
        for queued in entries:
            name = queued.pod.key
            if name in pods:
                name = f"{name}@{queued.pod.uid}"
            pods[name] = _pod(scheduler, queued, place, now)
            names.append(name)
        state[place] = names
    state["assumed"] = [f"{attempt.queued.pod.key} {attempt.node}" for attempt in waiting_for_bind]
    state["inFlightEvents"] = queue.in_flight_events()
    nominated = scheduler.state.nominated
    state["nominated"] = {node: [pod.key for pod in nominated.on_node(node)] for node in nominated.nodes if node}
    state["pods"] = pods
    return present(state)


def present(fields: Json) -> Json:
    """The fields without those that are empty or zero."""
    return {name: value for name, value in fields.items() if value}


def _by_name(entries: list[QueuedPod]) -> list[QueuedPod]:
    return sorted(entries, key=lambda queued: queued.pod.key)


def _pod(scheduler: Scheduler, queued: QueuedPod, place: str, now: float) -> Json:
    pod = queued.pod
    entry: Json = {
        "unschedulableCount": queued.unschedulable_count,
        "errorCount": queued.error_count,
        "unschedulablePlugins": sorted(queued.unschedulable_plugins),
        "pendingPlugins": sorted(queued.pending_plugins),
        "gatingPlugin": queued.gating_plugin,
        "flushed": queued.flushed,
        "nominator": scheduler.state.nominated.node_of(pod),
        "nominatedNodeName": pod.status.nominated_node_name,
    }
    if place in _WITH_EXPIRY and (queued.unschedulable_count or queued.error_count):
        until = scheduler.queue.backoff_until(queued)
        entry["backoffUntil"] = round(until, 3)
        if place in ("backoff", "errorBackoff"):
            entry["backoffRemaining"] = round(until - now, 3)
    always = {"place": place, "uid": pod.uid, "attempts": queued.attempts, "timestamp": round(queued.timestamp, 3)}
    return {**always, **present(entry)}

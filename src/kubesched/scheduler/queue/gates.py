"""The gates of the queue: PreEnqueue plugins, asked whether they hold a pod back."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kubesched.framework.plugin import PreEnqueuePlugin
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.state.cluster import ClusterState

_ERRORS = "kubesched_handler_errors_total"

log = logging.getLogger(__name__)


def holds_back(
    gate: PreEnqueuePlugin, queued: QueuedPod, state: ClusterState, listeners: Iterable[SchedulerListener]
) -> bool:
    """Whether the gate is closed for the pod. One that breaks is, as in kube-scheduler one that answers an error."""
    try:
        return gate.pre_enqueue(queued.pod, state) is not None
    except Exception:  # of a plugin: its pod waits, and nobody else
        log.exception("PreEnqueue plugin %s broke for pod %s, which waits", gate.name, queued.key)
        for listener in listeners:
            listener.counted(_ERRORS, ("Pod",))
        return True

"""Logs the changes that the scheduler handles and its attempts, in the words of kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.log import Log
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Done
from kubesched.scheduler.listener import SchedulerListener

log = Log(__name__)

_ADD, _UPDATE, _DELETE = ("Add", 3), ("Update", 4), ("Delete", 3)
"""A verb, and the verbosity at which kube-scheduler logs it."""
_VERBS = {"added": _ADD, "updated": _UPDATE, "deleted": _DELETE}


class SchedulingLog(SchedulerListener):
    """Logs what a scheduler does."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        """`is_ours` knows the scheduler names of our profiles."""
        self._is_ours = is_ours

    def handling(self, change: Change[KubeObject]) -> None:
        if not log.enabled(3):
            return
        match change.obj:
            case Node() as node:
                verb, v = _VERBS[change.verb]
                log.info(f"{verb} event for node", v=v, node=node.name)
            case Pod():
                self._log_pod(change)

    def _log_pod(self, change: Change[Any]) -> None:
        """Log a pod that is bound as added to the cache and deleted from the queue."""
        old, new, pod = change.old, change.new, change.obj
        is_ours = self._is_ours(pod.spec.scheduler_name)
        if old is not None and new is not None and new.spec.node_name and not old.spec.node_name:
            _log_about("scheduled", pod, _ADD)
            if is_ours:
                _log_about("unscheduled", pod, _DELETE)
        elif pod.spec.node_name:
            _log_about("scheduled", pod, _VERBS[change.verb])
        elif is_ours:
            _log_about("unscheduled", pod, _VERBS[change.verb])

    def popped(self, attempt: Attempt) -> None:
        if log.enabled(3):
            log.info("Attempting to schedule pod", v=3, pod=attempt.queued.key)

    def finished(self, attempt: Attempt) -> None:
        pod, decision, failure = attempt.queued.key, attempt.decision, attempt.failure
        if attempt.outcome is AttemptOutcome.BOUND and decision is not None:
            if log.enabled(2):
                log.info("Successfully bound pod to node", v=2, pod=pod, node=attempt.node,
                         evaluatedNodes=decision.evaluated, feasibleNodes=decision.feasible)  # fmt: skip
        elif failure is not None and failure.is_rejection:
            if decision is not None and decision.found_no_nodes:
                log.info("Unable to schedule pod; no nodes are registered to the cluster; waiting", v=2, pod=pod)
            else:
                log.info("Unable to schedule pod; no fit; waiting", v=2, pod=pod, err=failure.message)
            was_evicted = isinstance(attempt.state, Done) and attempt.state.evicted
            for victim in attempt.victims if was_evicted else ():
                log.info("Preemptor Pod preempted victim Pod", v=2, preemptor=pod, victim=victim.pod.key,
                         node=failure.nominated)  # fmt: skip
        elif failure is not None:
            log.error("Error scheduling pod; retrying", err=failure.message, pod=pod)


def _log_about(adjective: str, pod: Pod, verb_and_verbosity: tuple[str, int]) -> None:
    verb, v = verb_and_verbosity
    log.info(f"{verb} event for {adjective} pod", v=v, pod=pod.key)

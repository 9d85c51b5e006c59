"""Word in the log of changes to nodes and pods, for those who want to read that much."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.log import Log
from kubesched.framework.events import Action
from kubesched.kube.reflector import Handler
from kubesched.scheduler.observing import pod_changes

log = Log(__name__)

_WORDS = {Action.ADD: ("Add", 3), Action.UPDATE: ("Update", 4), Action.DELETE: ("Delete", 3)}
"""What happened, and the verbosity at which kube-scheduler tells of it."""
_LEAST = 3


class ChangeLog:
    """Logs what happened, then tells the handler."""

    def __init__(self, handler: Handler[KubeObject], is_ours: Callable[[str], bool]) -> None:
        """`is_ours` tells the schedulers whose pods we wait for to be scheduled."""
        self._handler = handler
        self._is_ours = is_ours

    def added(self, obj: KubeObject) -> None:
        if log.enabled(_LEAST):
            self._tell(None, obj)
        self._handler.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if log.enabled(_LEAST):
            self._tell(old, new)
        self._handler.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        if log.enabled(_LEAST):
            self._tell(obj, None)
        self._handler.deleted(obj)

    def _tell(self, old: KubeObject | None, new: KubeObject | None) -> None:
        match old, new:
            case (Node() as node, None) | (_, Node() as node):
                what, v = _WORDS[Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE]
                log.info(f"{what} event for node", v=v, node=node.name)
            case (Pod() | None as before, Pod() | None as after):
                pod = after or before
                assert pod is not None
                for is_assigned, action in pod_changes(before, after, self._is_ours):
                    what, v = _WORDS[action]
                    log.info(f"{what} event for {'scheduled' if is_assigned else 'unscheduled'} pod", v=v, pod=pod.key)

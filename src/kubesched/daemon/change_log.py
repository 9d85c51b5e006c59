"""Word in the log of changes to nodes and pods, for those who want to read that much."""

from __future__ import annotations

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.logging import Log
from kubesched.kube.reflector import Handler

log = Log(__name__)

_COMES_OR_GOES = 3
_CHANGES = 4
"""The verbosities at which kube-scheduler tells of them."""


class ChangeLog:
    """Logs what happened, then tells the handler."""

    def __init__(self, handler: Handler[KubeObject]) -> None:
        self._handler = handler

    def added(self, obj: KubeObject) -> None:
        if log.enabled(_COMES_OR_GOES):
            _tell("Add", obj, _COMES_OR_GOES)
        self._handler.added(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if log.enabled(_CHANGES):
            _tell("Update", new, _CHANGES)
        self._handler.updated(old, new)

    def deleted(self, obj: KubeObject) -> None:
        if log.enabled(_COMES_OR_GOES):
            _tell("Delete", obj, _COMES_OR_GOES)
        self._handler.deleted(obj)


def _tell(what: str, obj: KubeObject, v: int) -> None:
    match obj:
        case Node():
            log.info(f"{what} event for node", v=v, node=obj.name)
        case Pod():
            log.info(f"{what} event for {'scheduled' if obj.spec.node_name else 'unscheduled'} pod", v=v, pod=obj.key)

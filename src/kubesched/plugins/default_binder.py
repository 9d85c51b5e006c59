"""DefaultBinder: the decision to bind; who carries it to the API server is not its concern."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import BindPlugin


@dataclass(frozen=True)
class Binding:
    """What must be told to the API server: this pod, and no other of its name, runs on that node."""

    namespace: str
    name: str
    uid: str
    node_name: str


class DefaultBinder(BindPlugin):
    """Binds every pod to the node that was chosen."""

    name = "DefaultBinder"

    def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Binding:
        return Binding(pod.namespace, pod.name, pod.uid, node_name)

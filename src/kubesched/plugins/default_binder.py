"""DefaultBinder: the decision to bind; who carries it to the API server is not its concern."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import BindPlugin
from kubesched.framework.status import BIND_IT, Status


class DefaultBinder(BindPlugin):
    """Binds every pod to the node that was chosen."""

    name = "DefaultBinder"

    def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status:
        return BIND_IT

"""DefaultBinder: writes the binding of a pod to its node."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.framework.client import ClientError
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import BindPlugin
from kubesched.framework.status import Status, error


class DefaultBinder(BindPlugin):
    """Binds every pod to the node that was chosen."""

    name = "DefaultBinder"

    async def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        try:
            await self.context.client.bind(pod, node_name)
        except ClientError as failure:
            return error(str(failure))
        return None

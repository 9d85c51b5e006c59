"""DefaultBinder: writes the binding of a pod to its node."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.framework.client import ClientError
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import BindPlugin
from kubesched.framework.status import Status, error

PAUSES = (0.01, 0.05, 0.25)
"""Seconds before a binding is sent again, if the release does that."""


class DefaultBinder(BindPlugin):
    """Binds every pod to the node that was chosen."""

    name = "DefaultBinder"

    async def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        pauses = PAUSES if self.context.features.release.bindings_retried else ()
        for pause in (*pauses, None):
            try:
                await self.context.client.bind(pod, node_name)
            except ClientError as failure:
                if pause is None or not failure.is_passing:
                    return error(str(failure))
                await self.context.handle.pause(pause)
            else:
                return None
        raise AssertionError("the last binding is sent without a pause after it")

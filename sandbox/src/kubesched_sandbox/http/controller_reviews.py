"""Admission webhooks are asked about what the sandbox's own controllers write, too.

A controller works in one go and cannot wait for an answer: the write ends its turn, the webhooks are asked meanwhile,
and the controller's next try has the answer. What nodes and the scheduler write is not asked about, nor are events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import EVENTS, Object
from kubesched_sandbox.api import Api
from kubesched_sandbox.api.reviewing import ControllerWrite, Patches, ReviewPendingError
from kubesched_sandbox.api.tokens import UserInfo
from kubesched_sandbox.http.webhooks import Webhooks, Write

_CONTROLLERS = UserInfo("system:kube-controller-manager", "", ("system:authenticated",))
_FRESH = 5.0
"""Seconds after which an answer that no controller has come back for counts for nothing."""


class _Answer(NamedTuple):
    said: Patches | ApiError
    at: float


class ControllerReviews:
    """What webhooks say about the writes of controllers."""

    def __init__(self, api: Api) -> None:
        self._clock = api.stamps.time
        self._webhooks = Webhooks(api)
        self._answers: dict[ControllerWrite, _Answer] = {}
        self._asking: dict[ControllerWrite, asyncio.Task[None]] = {}

    def __call__(
        self, write: ControllerWrite, old: Object | None, propose: Callable[[Patches], Object | None]
    ) -> Patches:
        """The patches that webhooks ask for; ReviewPendingError while they are asked, ApiError if one says no."""
        operation, resource, subresource, namespace, name, _ = write
        about = Write(operation, resource, subresource, namespace, name, _CONTROLLERS, False)
        if resource is EVENTS or not self._webhooks.are_asked(about):
            return ()
        answer = self._answers.pop(write, None)
        if answer is None or self._clock() - answer.at > _FRESH:
            if write not in self._asking:
                self._asking[write] = asyncio.create_task(self._ask(write, about, old, propose))
            raise ReviewPendingError
        if isinstance(answer.said, ApiError):
            raise answer.said
        return answer.said

    async def stop(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, write: ControllerWrite, about: Write, old: Object | None, propose: Callable[[Patches], Object | None]
    ) -> None:
        said: Patches | ApiError
        try:
            said, _ = await self._webhooks.review(about, old, propose)
        except ApiError as error:
            said = error
        finally:
            del self._asking[write]
        self._answers[write] = _Answer(said, self._clock())

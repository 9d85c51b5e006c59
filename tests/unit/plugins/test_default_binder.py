"""DefaultBinder: a binding that fails for a moment is sent again, in releases that do that."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.api.pod import Pod
from kubesched.api.release import V1_36, V1_37, Release
from kubesched.config.features import Features
from kubesched.framework.client import CONFLICT, ClientError, ClusterClient, Handle
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PluginContext
from kubesched.library.builders import make_pod
from kubesched.plugins.default_binder import PAUSES, DefaultBinder
from kubesched.state.cluster import ClusterState


class FailingClient(ClusterClient):
    def __init__(self, *reasons: str) -> None:
        self._reasons = list(reasons)
        self.sent = 0

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.sent += 1
        if self._reasons:
            raise ClientError(self._reasons.pop(0), "injected")


class PausingHandle(Handle):
    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def bound(release: Release, *reasons: str) -> tuple[bool, int, list[float]]:
    """Whether it was bound in the end, how many bindings were sent, and the pauses between them."""
    client, handle, pod = FailingClient(*reasons), PausingHandle(), make_pod("p").build()
    binder = DefaultBinder(None, PluginContext(Features.of({}, release), client=client, handle=handle))
    status = asyncio.run(binder.bind(Cycle(pod, ClusterState()), pod, "a"))
    return status is None, client.sent, handle.pauses


@pytest.mark.parametrize("reason", ["InternalError", "ServiceUnavailable"])
def test_a_passing_failure_is_survived_since_1_37(reason: str) -> None:
    assert bound(V1_36, reason) == (False, 1, [])
    assert bound(V1_37, reason) == (True, 2, [PAUSES[0]])


def test_four_bindings_are_sent_at_most() -> None:
    assert bound(V1_37, *["InternalError"] * 9) == (False, 4, list(PAUSES))


def test_a_conflict_is_not_tried_again() -> None:
    assert bound(V1_37, CONFLICT) == (False, 1, [])

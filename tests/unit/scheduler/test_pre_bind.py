"""What plugins do before a pod is bound: the profile decides who, and in which order; every plugin may write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.unit.plugins import volume_builders as volumes
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.plugin_world import World

from kubesched.api.pod import Pod
from kubesched.framework.client import Awaited, ClientError, Json
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PreBindPlugin, ReservePlugin
from kubesched.framework.status import SKIP, Status, error
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.testing import make_pod


class Storage(MemoryCluster):
    """Notes what is patched; volumes are there as soon as they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        self.calls.append(f"patch {kind}")
        return await super().patch(kind, name, patch, namespace=namespace, subresource=subresource)

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        self.calls.append("wait")
        return True

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        if reason == Witness.name:
            self.calls.append(reason)


class Witness(PreBindPlugin):
    """Notes that it was asked."""

    name = "Witness"

    def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        note = {"type": "Normal", "action": "Binding", "note": ""}
        self.context.client.record_event(pod, related=None, reason=self.name, **note)


def bound_with_volume(**points: Any) -> list[str]:
    """What is done before a pod with a volume that must be made is bound."""
    cluster = Storage()
    world = World(Witness, cluster=cluster, **points)
    for obj in (volumes.storage_class("slow"), volumes.claim("data", storageClassName="slow")):
        cluster.put(obj)
    world.add(volumes.pod("p", claims=("data",)))
    assert world.finish(world.attempt()).outcome == "bound"
    return cluster.calls


def test_volumes_are_written_before_the_pod_is_bound() -> None:
    assert bound_with_volume() == ["patch PersistentVolumeClaim", "wait", "Witness"]


def test_plugin_that_is_disabled_before_binding_writes_nothing() -> None:
    assert bound_with_volume(preBind={"disabled": [{"name": "VolumeBinding"}]}) == ["Witness"]


def test_plugins_work_in_the_order_of_the_configuration() -> None:
    order = {"disabled": [{"name": "*"}], "enabled": [{"name": "Witness"}, {"name": "VolumeBinding"}]}
    assert bound_with_volume(preBind=order) == ["Witness", "patch PersistentVolumeClaim", "wait"]


class Inventory(PreBindPlugin, ReservePlugin):
    """Notes in a namespace's annotations which pod comes last, and takes that back if the pod does not come."""

    name = "Inventory"

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        pass

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        cycle.defer(lambda: self._annotate(pod, None))

    def pre_bind_pre_flight(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return None if pod.metadata.labels.get("tracked") else SKIP

    async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return await self._annotate(pod, node_name)

    async def _annotate(self, pod: Pod, value: str | None) -> Status | None:
        try:
            await self.context.client.patch("Namespace", pod.namespace, {"metadata": {"annotations": {"last": value}}})
        except ClientError as failure:
            return error(str(failure))
        return None


def tried(pod: Pod, *, namespaced: bool = True, refusal: str = "") -> tuple[World, Attempt]:
    world = World(Inventory)
    if namespaced:
        world.cluster.put(volumes.make("Namespace", "default"))
    if refusal:
        world.cluster.bind_refusals.append(Refusal(refusal))
    world.add(pod)
    return world, world.finish(world.attempt())


def annotated(world: World) -> dict[str, str]:
    return world.cluster.objects["Namespace default"].metadata.annotations


TRACKED = make_pod("a").label(tracked="yes").build()


def test_any_plugin_may_write_before_a_pod_is_bound() -> None:
    world, attempt = tried(TRACKED)
    assert attempt.outcome == "bound"
    assert annotated(world) == {"last": "n1"}
    assert world.cluster.pod("a").status.nominated_node_name == "n1"


def test_write_that_fails_fails_the_attempt_in_the_plugins_name() -> None:
    world, attempt = tried(TRACKED, namespaced=False)
    assert attempt.outcome == "bind-error"
    assert world.message == 'running PreBind plugin "Inventory": Namespace "default" not found'
    assert attempt.failure is not None
    assert attempt.failure.status.plugin == "Inventory"


def test_what_was_written_is_taken_back_before_the_pod_is_tried_again() -> None:
    world, attempt = tried(TRACKED, refusal="InternalError")
    assert attempt.outcome == "bind-error"
    assert annotated(world) == {}


def test_plugin_with_nothing_to_do_is_left_out_and_no_node_is_named_beforehand() -> None:
    world, attempt = tried(make_pod("a").build())
    assert attempt.outcome == "bound"
    assert annotated(world) == {}
    assert world.cluster.pod("a").status.nominated_node_name == ""


def test_undoing_that_breaks_keeps_no_pod_from_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Inventory):
        name = "Broken"

        def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
            async def break_() -> None:
                raise RuntimeError("out of luck")

            cycle.defer(break_)

    world = World(Broken)
    world.cluster.bind_refusals.append(Refusal("InternalError"))
    world.add(make_pod("a").build())
    attempt = world.attempt()
    Running(world.scheduler.finish(attempt)).to_the_end()
    assert attempt.outcome == "bind-error"
    assert [queued.key for queued in world.scheduler.queue.error_backoff()] == ["default/a"]
    assert "out of luck" in caplog.text

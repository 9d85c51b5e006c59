"""Attempts that wait for others: however many there are, the other pods are scheduled, and waiting costs nothing."""

from __future__ import annotations

import asyncio

import pytest
from tests import virtual_time
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.plugins import volume_builders as volumes
from tests.unit.scheduler.living import Doorkeeper, Living, SlowCluster, living
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.client import Json
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PermitPlugin, PreBindPlugin
from kubesched.framework.status import Code, Status
from kubesched.framework.waiting import WaitingPod
from kubesched.scheduler import loop
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.testing import make_node, make_pod

MOST = 20
"""Writes under way at most, in these tests."""


@pytest.fixture(autouse=True)
def _few_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_WRITES_AT_MOST", MOST)


def with_volume(name: str) -> tuple[PersistentVolumeClaim, Pod]:
    """A pod, and the claim that it waits for: nobody makes a volume for it."""
    claim = volumes.claim(f"data-{name}", storageClassName="slow")
    assert isinstance(claim, PersistentVolumeClaim)
    return claim, volumes.pod(name, claims=(claim.name,))


def let_wait_for_volumes(world: Living, pods: int) -> None:
    world.see(make_node("n1").capacity(cpu="9999", pods="99999"), volumes.storage_class("slow"))
    for i in range(pods):
        world.see(*with_volume(f"p{i}"))


async def is_bound_at_once(world: Living) -> bool:
    world.see(make_pod("other"))
    await asyncio.sleep(0.1)
    return bool(world.cluster.pod("other").spec.node_name)


def test_pods_that_wait_for_volumes_hold_up_nobody() -> None:
    async def story() -> None:
        async with living() as world:
            let_wait_for_volumes(world, 3 * MOST)
            await asyncio.sleep(60)
            assert world.loop.unfinished == 3 * MOST
            assert await is_bound_at_once(world)
            await asyncio.sleep(600)
            assert world.outcomes[1:] == ["bind-error"] * 3 * MOST  # in vain, after the time that volumes are given

    virtual_time.run(story())


def test_pods_that_wait_for_devices_hold_up_nobody() -> None:
    async def story() -> None:
        async with living(features=config.Features(device_binding_conditions=True)) as world:
            devices = [device(f"d{i}", conditions=("ready",)) for i in range(3 * MOST)]
            world.see(make_node("n1").capacity(cpu="9999", pods="999"), make_class(), make_slice("n1", *devices))
            for i in range(3 * MOST):
                world.see(make_claim(f"c{i}"), with_claims(make_pod(f"p{i}"), f"c{i}"))
            await asyncio.sleep(60)
            world.cluster.tell(world.scheduler)
            assert (world.loop.unfinished, world.outcomes) == (3 * MOST, [])
            assert await is_bound_at_once(world)

    virtual_time.run(story())


class Selective(PermitPlugin, PreBindPlugin):
    """Lets pods wait, one way or the other, all but one."""

    name = "Selective"
    waits_before_binding = True

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        waits = not self.waits_before_binding and pod.name != "other"
        return (Status(Code.WAIT), 60.0) if waits else (None, 0.0)

    async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        await asyncio.sleep(60 if self.waits_before_binding and pod.name != "other" else 0)
        return None


@pytest.mark.parametrize("before_binding", [True, False])
def test_pods_that_wait_for_a_plugin_hold_up_nobody(before_binding: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Selective, "waits_before_binding", before_binding)

    async def story() -> None:
        async with living(plugins=[Selective]) as world:
            world.see(make_node("n1").capacity(pods="999"), *(make_pod(f"p{i}") for i in range(3 * MOST)))
            await asyncio.sleep(30)
            assert await is_bound_at_once(world)

    virtual_time.run(story())


def test_writes_under_way_are_limited() -> None:
    most = 0

    class Counted(SlowCluster):
        under_way = 0

        async def bind(self, pod: Pod, node_name: str) -> None:
            nonlocal most
            self.under_way += 1
            most = max(most, self.under_way)
            await super().bind(pod, node_name)
            self.under_way -= 1

    async def story() -> None:
        async with living(Counted()) as world:
            world.see(make_node("n1").capacity(pods="999"), *(make_pod(f"p{i}") for i in range(5 * MOST)))
            await asyncio.sleep(9)
            assert len(world.scheduler.queue.active()) == 4 * MOST
            await asyncio.sleep(42)
            assert world.outcomes == ["bound"] * 5 * MOST

    virtual_time.run(story())
    assert most == MOST


def test_write_that_is_followed_by_a_wait_makes_room_for_the_next() -> None:
    class Slow(MemoryCluster):
        async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
            await asyncio.sleep(0.2)
            return await super().patch(kind, name, patch, namespace=namespace, subresource=subresource)

    async def story() -> None:
        async with living(Slow()) as world:
            let_wait_for_volumes(world, 3 * MOST)
            await asyncio.sleep(0.1)
            assert world.loop.unfinished == MOST
            await asyncio.sleep(0.55)  # and not a second for each, which is how often the loop looks by itself
            assert world.loop.unfinished == 3 * MOST

    virtual_time.run(story())


def test_change_of_a_claim_wakes_only_those_who_wait_for_it() -> None:
    async def story() -> None:
        waiter, asked = ObjectWaiter(), []
        claims = [volumes.claim(f"c{i}") for i in range(100)]

        async def wait(i: int) -> None:
            def is_met() -> bool:
                asked.append(i)
                return asked.count(i) == 3

            objects = [(PersistentVolumeClaim, claims[i].key)]
            await waiter.wait(make_pod(f"p{i}").build(), is_met, objects=lambda: objects, within=600)

        waits = [asyncio.create_task(wait(i)) for i in range(100)]
        await asyncio.sleep(1)
        asked.clear()
        waiter.handled(Change(new=claims[7]), (), 0.0)
        waiter.handled(Change(new=make_pod("p9").build()), (), 0.0)
        waiter.handled(Change(new=make_node("n").build()), (), 0.0)
        await asyncio.sleep(500)
        assert asked == [7, 9]  # and time alone wakes nobody
        for wait_ in waits:
            wait_.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        assert waiter.awaited == 0

    virtual_time.run(story())


def test_looking_after_pods_that_wait_for_a_plugin_costs_nothing_until_their_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[str] = []
    expire = WaitingPod.expire

    def noting(waiting: WaitingPod, now: float) -> None:
        looked_at.append(waiting.pod.name)
        expire(waiting, now)

    monkeypatch.setattr(WaitingPod, "expire", noting)

    async def story() -> None:
        async with living(plugins=[Doorkeeper]) as world:
            world.see(make_node("n1").capacity(pods="999"), *(make_pod(f"p{i}") for i in range(50)))
            await asyncio.sleep(30)
            for waiting in list(world.scheduler.waiting)[10:]:
                waiting.allow("Doorkeeper")
            await asyncio.sleep(20)
            assert (looked_at, world.outcomes) == ([], ["bound"] * 40)
            await asyncio.sleep(15)
            assert sorted(looked_at) == sorted(f"p{i}" for i in range(10))

    virtual_time.run(story())


def test_attempts_that_wait_end_with_the_scheduler() -> None:
    async def story() -> None:
        async with living() as world:
            let_wait_for_volumes(world, 3 * MOST)
            await asyncio.sleep(10)
            await world.loop.stop(within=0)
            assert world.loop.unfinished == 0
            world.cluster.unseen.clear()
            await asyncio.sleep(700)
            assert not world.cluster.unseen  # nothing more was written

    virtual_time.run(story())

"""The scheduler on an event loop, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from tests import virtual_time
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.living import Doorkeeper, SlowCluster, living
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal

from kubesched import config
from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import Json
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PreBindPlugin
from kubesched.framework.status import Status
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.testing import make_node, make_pod


def test_pod_is_bound_as_soon_as_it_is_there() -> None:
    async def story() -> None:
        async with living() as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(0.1)
            assert world.outcomes == ["bound"]

    virtual_time.run(story())


def test_bindings_run_beside_each_other() -> None:
    async def story() -> None:
        async with living(SlowCluster()) as world:
            world.see(make_node("n1"), *(make_pod(f"p{i}") for i in range(20)))
            await asyncio.sleep(9)
            assert (world.loop.unfinished, world.outcomes) == (20, [])
            await asyncio.sleep(2)
            assert world.outcomes == ["bound"] * 20

    virtual_time.run(story())


def test_pod_that_found_no_node_is_tried_again_when_one_comes() -> None:
    async def story() -> None:
        async with living() as world:
            world.see(make_node("small").capacity(cpu="1"), make_pod("a").requests(cpu="2"))
            await asyncio.sleep(100)
            assert world.outcomes == ["unschedulable"]
            world.see(make_node("large").capacity(cpu="4"))
            await asyncio.sleep(0.1)
            assert world.outcomes == ["unschedulable", "bound"]

    virtual_time.run(story())


def test_pod_with_an_error_is_tried_again_after_its_backoff_without_anybody_calling() -> None:
    async def story() -> None:
        async with living() as world:
            world.cluster.bind_refusals.append(Refusal("InternalError"))
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(0.1)
            assert world.outcomes == ["bind-error"]
            await asyncio.sleep(3)
            assert world.outcomes == ["bind-error", "bound"]

    virtual_time.run(story())


def test_backoff_ends_with_a_whole_second_whenever_the_scheduler_began() -> None:
    async def story() -> None:
        await asyncio.sleep(0.9)
        async with living() as world:
            world.cluster.bind_refusals.append(Refusal("InternalError"))
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1.05)
            assert world.outcomes == ["bind-error"]
            await asyncio.sleep(0.1)
            assert world.outcomes == ["bind-error", "bound"]

    virtual_time.run(story())


def test_who_stops_finishes_what_was_decided() -> None:
    async def story() -> None:
        async with living(SlowCluster()) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1)
        assert world.outcomes == ["bound"]

    virtual_time.run(story())


def test_who_must_stop_at_once_cuts_bindings_off() -> None:
    async def story() -> None:
        async with living(SlowCluster()) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1)
            await world.loop.stop(within=2)
            assert virtual_time.now() < 4
        assert world.cluster.bindings == []

    virtual_time.run(story())


def test_other_tasks_get_their_turn_while_many_pods_wait() -> None:
    async def story() -> None:
        async with living(slice_seconds=0) as world:
            world.see(make_node("n1"), *(make_pod(f"p{i}") for i in range(50)))
            turns = 0
            while len(world.attempts) < 50:
                await asyncio.sleep(0)
                turns += 1
            assert turns >= 50

    virtual_time.run(story())


@pytest.mark.parametrize("evicting", ["first", "later"])
def test_preemptors_that_come_together_do_not_choose_the_same_victims(evicting: str) -> None:
    async def story() -> None:
        async with living(features=config.Features(async_preemption=evicting == "later")) as world:
            world.cluster.graceful = True
            full = [make_pod(f"on-{node}").requests(cpu="4").on(node) for node in ("a", "b")]
            world.see(*(make_node(name).capacity(cpu="4") for name in ("a", "b")), *full)
            world.see(*(make_pod(f"urgent-{i}").requests(cpu="3").priority(10) for i in range(2)))
            await asyncio.sleep(0.5)
            assert sorted(world.cluster.evicted) == ["on-a", "on-b"]
            nominated = {world.cluster.pod(f"urgent-{i}").status.nominated_node_name for i in range(2)}
            assert nominated == {"a", "b"}

    virtual_time.run(story())


def test_pod_that_was_let_in_is_bound_at_once() -> None:
    async def story() -> None:
        async with living(plugins=[Doorkeeper]) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(5.5)
            assert world.outcomes == []
            [waiting] = world.scheduler.waiting
            waiting.allow("Doorkeeper")
            await asyncio.sleep(0.01)
            assert world.outcomes == ["bound"]

    virtual_time.run(story())


def test_pod_that_waits_to_be_let_in_shows_where_it_will_go() -> None:
    told: list[str | None] = []

    class Listening(MemoryCluster):
        async def patch_pod_status(
            self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
        ) -> None:
            told.append(nominated_node_name)
            await super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    async def story() -> None:
        async with living(Listening(), plugins=[Doorkeeper]) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1)
            assert told == ["n1"]
            world.cluster.tell(world.scheduler)
            await asyncio.sleep(59.5)  # nobody lets it in
            assert told[1] == ""

    virtual_time.run(story())


def test_pod_is_bound_only_after_it_was_told_where_it_will_go() -> None:
    class Slow(MemoryCluster):
        async def patch_pod_status(
            self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
        ) -> None:
            await asyncio.sleep(5)
            await super().patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)

    async def story() -> None:
        async with living(Slow(), plugins=[Doorkeeper]) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1)
            [waiting] = world.scheduler.waiting
            waiting.allow("Doorkeeper")
            await asyncio.sleep(3)
            assert world.outcomes == []
            await asyncio.sleep(2)
            assert world.outcomes == ["bound"]

    virtual_time.run(story())


class Slowpoke(PreBindPlugin):
    """Takes a minute before a pod may be bound."""

    name = "Slowpoke"

    async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        await asyncio.sleep(60 if pod.name == "a" else 0)
        return None


def test_pod_that_is_not_bound_yet_gives_way_without_being_deleted() -> None:
    async def story() -> None:
        async with living(plugins=[Slowpoke]) as world:
            world.see(make_node("n1"), make_pod("a").requests(cpu="4"))
            await asyncio.sleep(1)
            world.see(make_pod("vip").requests(cpu="4").priority(10))
            await asyncio.sleep(5)
            assert world.cluster.evicted == []
            assert world.outcomes == ["unschedulable", "bind-error", "bound", "unschedulable"]
            assert world.cluster.pod("vip").spec.node_name == "n1"
            failure = world.attempts[1].failure
            assert failure is not None
            assert failure.message == 'running PreBind plugin "Slowpoke": preempted by DefaultPreemption'

    virtual_time.run(story())


def test_write_of_a_claim_is_not_broken_off_when_its_pod_gives_way() -> None:
    class Slow(MemoryCluster):
        async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
            await asyncio.sleep(1 if subresource == "status" else 0)
            return await super().patch(kind, name, patch, namespace=namespace, subresource=subresource)

    async def story() -> None:
        async with living(Slow()) as world:
            world.see(make_node("n1"), make_class(), make_slice("n1", device("d")), make_claim("c"))
            world.see(with_claims(make_pod("a").requests(cpu="4"), "c"))
            await asyncio.sleep(0.5)
            world.see(make_pod("vip").requests(cpu="4").priority(10))
            await asyncio.sleep(8)
            assert world.outcomes[:2] == ["unschedulable", "bind-error"]
            claim = world.cluster.claim("default/c")
            assert claim is not None
            assert claim.status.allocation is not None  # what was being written
            ledger = world.scheduler.state.companion(ClusterDevices).ledger
            ledger.refresh()
            assert len(ledger.devices_in_use()) == 1

    virtual_time.run(story())


def test_pod_whose_binding_is_cut_off_by_the_end_is_not_reported_as_failed() -> None:
    async def story() -> None:
        async with living(plugins=[Slowpoke]) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(1)
            await world.loop.stop(within=1)
            assert world.cluster.pod("a").status.conditions == ()

    virtual_time.run(story())


def test_pod_that_nobody_let_in_is_given_up_in_time() -> None:
    async def story() -> None:
        async with living(plugins=[Doorkeeper]) as world:
            world.see(make_node("n1"), make_pod("a"))
            await asyncio.sleep(59)
            assert world.outcomes == []
            await asyncio.sleep(3)
            assert world.outcomes[0] == "bind-unschedulable"

    virtual_time.run(story())


def test_what_came_together_is_handled_before_the_first_pod_is_decided() -> None:
    async def story() -> None:
        async with living() as world:
            await asyncio.sleep(0.1)
            world.see(make_pod("a"))
            asyncio.get_running_loop().call_soon(world.see, make_node("n1"))
            await asyncio.sleep(0.1)
            assert world.outcomes == ["bound"]

    virtual_time.run(story())

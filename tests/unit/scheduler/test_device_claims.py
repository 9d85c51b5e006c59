from __future__ import annotations

import asyncio
import gc
import io
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal, Running
from tests.unit.scheduler.world import World, pop_pod

from kubesched import config
from kubesched.api.device_claims import (
    FINALIZER,
    AllocatedDevice,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocation,
    DeviceCondition,
    ResourceClaim,
)
from kubesched.plugins.registry import in_tree
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.device_kinds import DeviceKind
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay
from kubesched.testing import PodBuilder, make_node, make_pod

P = with_claims(make_pod("p"), "c")
ELSEWHERE = AllocationResult(devices=DeviceAllocation(results=(AllocatedDevice(driver="x", pool="y", device="z"),)))
GPU = ("gpu.example.com", "n", "d")


def world(*objects: object, devices: tuple[object, ...] = (device("d"),), **settings: bool) -> World:
    known = make_node("n"), make_class(), make_slice("n", *devices)  # type: ignore[arg-type]
    return World(*known, *objects, **settings)  # type: ignore[arg-type]


def claim_in(world: World, name: str = "c") -> ResourceClaim:
    claim = world.cluster.claim(f"default/{name}")
    assert claim is not None
    return claim


def in_use(world: World) -> list[tuple[str, str, str]]:
    ledger = world.scheduler.state.companion(ClusterDevices).ledger
    ledger.refresh()
    return ledger.devices_in_use()


def message(attempt: Attempt) -> str:
    assert attempt.failure is not None
    return attempt.failure.message


def test_a_pod_is_bound_once_its_claim_has_devices_and_is_reserved_for_it() -> None:
    it = world(make_claim("c"), P)
    assert it.tried().outcome == "bound"
    claim = claim_in(it)
    assert claim.metadata.finalizers == (FINALIZER,)
    assert claim.is_reserved_for("uid-of-p")
    assert claim.status.allocation is not None
    assert [device.id for device in claim.status.allocation.devices.results] == [GPU]
    assert claim.status.allocation.allocation_timestamp == "1970-01-01T00:00:00Z"
    assert in_use(it) == [GPU]


@pytest.mark.parametrize(
    ("spares", "conditions", "told"), [(False, (), "n"), (True, (), ""), (True, ("up",), "n"), (False, ("up",), "n")]
)
def test_where_a_pod_is_going_is_told_beforehand_but_where_its_claim_is_only_written_if_that_is_spared(
    *, spares: bool, conditions: tuple[str, ...], told: str
) -> None:
    it = world(make_claim("c"), P, devices=(device("d", conditions=conditions),), batched=spares)
    it.cluster.bind_refusals.append(Refusal("InternalError"))
    it.tried()
    assert claim_in(it).status.allocation is not None
    assert it.cluster.pod("p").status.nominated_node_name == told


def test_a_write_that_is_refused_gives_the_devices_back_and_the_pod_another_try() -> None:
    it = world(make_claim("c"), P)
    it.cluster.claim_refusals.append(Refusal("InternalError"))
    failed = it.tried()
    expected = 'running PreBind plugin "DynamicResources": add allocation and reservation to claim default/c: refused'
    assert message(failed) == expected
    assert in_use(it) == []
    it.pass_seconds(11)
    assert it.tried().outcome == "bound"


def test_if_the_second_claim_cannot_be_written_the_first_is_not_reserved_any_longer() -> None:
    it = world(
        make_claim("c"), make_claim("e"), with_claims(make_pod("p"), "c", "e"), devices=(device("a"), device("b"))
    )
    it.cluster.claim_refusals.extend([None, Refusal("InternalError")])
    it.tried()
    assert not claim_in(it, "c").status.reserved_for
    assert claim_in(it, "c").status.allocation is not None
    assert claim_in(it, "e").status.allocation is None


def test_a_claim_that_somebody_else_allocated_meanwhile_is_left_alone() -> None:
    it = world(make_claim("c"), P)
    attempt = it.decided()
    theirs = replace(claim_in(it), status=replace(claim_in(it).status, allocation=ELSEWHERE))
    it.cluster.put(theirs)
    it.finish(attempt)
    assert "claim default/c got allocated elsewhere in the meantime" in message(attempt)
    assert claim_in(it).status.allocation == ELSEWHERE


def test_a_bind_that_fails_takes_the_reservation_back_but_not_the_devices() -> None:
    it = world(make_claim("c"), P)
    it.cluster.bind_refusals.append(Refusal("InternalError"))
    it.tried()
    assert not claim_in(it).status.reserved_for
    assert in_use(it) == [GPU]
    it.pass_seconds(11)
    assert it.tried().outcome == "bound"


def test_an_idle_claim_that_keeps_a_pod_from_other_nodes_is_given_back() -> None:
    it = world(make_claim("c"), P)
    it.cluster.bind_refusals.append(Refusal("InternalError"))
    it.tried()
    it.lose(make_node("n"))
    it.see(make_node("m"), make_slice("m", device("d")))
    it.pass_seconds(11)
    assert "deallocation of ResourceClaim completed" in message(it.tried())
    assert claim_in(it).status.allocation is None
    it.pass_seconds(11)
    assert it.tried().node == "m"


def test_a_claim_is_made_for_extended_resources_and_told_to_the_pod() -> None:
    it = World(make_node("n"), make_class(resource="example.com/gpu"), make_slice("n", device("d")))
    it.see(make_pod("p").requests({"example.com/gpu": "1"}))
    assert it.tried().outcome == "bound"
    told = it.cluster.pod("p").status.extended_resource_claim_status
    assert told is not None
    assert [mapping.request_name for mapping in told.request_mappings] == ["container-0-request-0"]
    assert claim_in(it, told.resource_claim_name).is_reserved_for("uid-of-p")
    assert in_use(it) == [GPU]


def test_a_claim_for_extended_resources_is_deleted_if_the_pod_cannot_be_bound() -> None:
    it = World(make_node("n"), make_class(resource="example.com/gpu"), make_slice("n", device("d")))
    it.see(make_pod("p").requests({"example.com/gpu": "1"}))
    it.cluster.bind_refusals.append(Refusal("InternalError"))
    it.tried()
    assert not [obj for obj in it.cluster.objects.values() if isinstance(obj, ResourceClaim)]
    assert in_use(it) == []


# -- devices that take a while ----------------------------------------------------------------------------------------


class Counts(SchedulerListener):
    """What plugins count and measure."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, ...]] = []
        self.durations: list[tuple[str | float, ...]] = []

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        self.counts.append((metric, *labels))

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        self.durations.append((metric, seconds, *labels))


def slow_world() -> World:
    return world(make_claim("c"), P, devices=(device("d", conditions=("up",)), device("e")))


def reported(claim: ResourceClaim, type_: str) -> ResourceClaim:
    """The claim with a driver's word on its device."""
    condition = DeviceCondition(type=type_, status="True", reason="Said", message="so")
    status = AllocatedDeviceStatus(driver=GPU[0], pool=GPU[1], device=GPU[2], conditions=(condition,))
    return replace(claim, status=replace(claim.status, devices=(status,)))


async def until_written(it: World) -> None:
    for _ in range(50):
        await asyncio.sleep(0)
    it.cluster.tell(it.scheduler)


def test_a_pod_waits_for_its_devices_while_others_are_placed() -> None:
    async def run() -> None:
        it = slow_world()
        waiting = it.decided()
        binding = asyncio.create_task(it.scheduler.finish(waiting))
        await until_written(it)
        assert not binding.done()
        assert "BindingConditionsPending p" in it.cluster.notes
        it.see(make_claim("other"), with_claims(make_pod("q"), "other"))
        other = it.decided()
        await it.scheduler.finish(other)
        assert other.outcome == "bound"
        it.see(reported(claim_in(it), "up"))
        await binding
        assert waiting.outcome == "bound"

    asyncio.run(run())


def test_a_device_that_fails_ends_the_wait_and_is_given_back() -> None:
    async def run() -> None:
        it = slow_world()
        waiting = it.decided()
        binding = asyncio.create_task(it.scheduler.finish(waiting))
        await until_written(it)
        it.see(reported(claim_in(it), "broken"))
        await binding
        it.cluster.tell(it.scheduler)
        assert 'device binding failed: claim=c, reason=Said, message="so"' in message(waiting)
        it.pass_seconds(11)
        again = it.decided()
        await it.scheduler.finish(again)
        assert "deallocation of ResourceClaim completed" in message(again)
        assert claim_in(it).status.allocation is None

    asyncio.run(run())


def test_a_wait_ends_when_the_devices_should_have_been_ready() -> None:
    async def run() -> None:
        it = slow_world()
        waiting = it.decided()
        binding = asyncio.create_task(it.scheduler.finish(waiting))
        await until_written(it)
        it.now += 601
        it.see(reported(claim_in(it), "something else"))
        await binding
        assert "device binding timeout: claim=c" in message(waiting)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("word", "later", "outcome"), [("up", 3, "success"), ("broken", 3, "failure"), ("something else", 601, "timeout")]
)
def test_whoever_counts_is_told_how_a_wait_for_devices_ended(word: str, later: float, outcome: str) -> None:
    async def run() -> None:
        it, counts = slow_world(), Counts()
        it.scheduler.listeners.append(counts)
        binding = asyncio.create_task(it.scheduler.finish(it.decided()))
        await until_written(it)
        it.now += later
        it.see(reported(claim_in(it), word))
        await binding
        labels = ("default-scheduler", GPU[0], outcome)
        assert counts.counts == [("scheduler_dra_bindingconditions_allocations_total", *labels)]
        assert counts.durations == [("scheduler_dra_bindingconditions_wait_duration_seconds", later, *labels)]

    asyncio.run(run())


@pytest.mark.parametrize("pod", [P, make_pod("plain")])
def test_a_recording_of_claims_can_be_replayed(pod: PodBuilder) -> None:
    cluster, stream = MemoryCluster(), io.StringIO()
    recording = Recording(stream, config.default(), lambda: 0.0)
    client = RecordingClient(cluster, recording)
    zero = lambda: 0.0  # noqa: E731
    scheduler = build_scheduler(
        SchedulerSettings(clock=zero, draw=lambda among: 0, now=zero),
        config.default(),
        client,
        in_tree(),
        listeners=[recording],
    )
    for obj in (make_node("n").build(), make_class(), make_slice("n", device("d")), make_claim("c"), pod.build()):
        cluster.put(obj)
    cluster.tell(scheduler)
    attempt = pop_pod(scheduler)
    assert attempt is not None
    scheduler.decide(attempt)
    Running(scheduler.finish(attempt)).to_the_end()
    cluster.tell(scheduler)
    assert attempt.outcome == "bound"
    assert Replay(stream.getvalue().splitlines(), in_tree()).run() == []


def test_devices_of_nodes_that_are_gone_leave_nothing_behind() -> None:
    it = World(make_class())

    def come_and_go(number: int) -> None:
        node, claim = make_node(f"n-{number}"), make_claim(f"c-{number}")
        published = make_slice(f"n-{number}", device("d", passing=number))
        pod = with_claims(make_pod(f"p-{number}"), claim.name)
        it.see(node, published, claim, pod)
        assert it.tried().outcome == "bound"
        bound = it.cluster.pod(pod.build().name)
        for obj in (bound, claim_in(it, claim.name), published, node.build()):
            it.cluster.remove(obj)
        it.cluster.tell(it.scheduler)

    for number in range(30):
        come_and_go(number)
    gc.collect()
    left = [obj for obj in gc.get_objects() if isinstance(obj, DeviceKind) and "passing" in obj.device.attributes]
    assert len(left) <= 2
    assert in_use(it) == []

"""Pods that share a claim: none is tried in vain while it is being allocated for one, and all are written at once."""

from __future__ import annotations

import asyncio
import io

import pytest
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.memory_cluster import MemoryCluster, Refusal
from tests.unit.scheduler.world import World, pop_pod

from kubesched import config
from kubesched.api.device_claims import ResourceClaim
from kubesched.framework.client import Json, SchedulerMode
from kubesched.plugins.dynamic_resources.joining import JoinedConsumers
from kubesched.plugins.registry import in_tree
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = (make_node("m").build(), make_node("n").capacity(cpu="4", pods="110").build())


def sharing(*names: str, cpu: str = "1") -> list[PodBuilder]:
    return [with_claims(make_pod(name).requests(cpu=cpu), "c") for name in names]


def world(*pods: PodBuilder, spares: bool = True) -> World:
    """Devices only on node n."""
    known = *NODES, make_class(), make_slice("n", device("d"), device("e")), make_claim("c")
    return World(*known, *pods, batched=spares)


def claim_in(cluster: MemoryCluster) -> ResourceClaim:
    claim = cluster.claim("default/c")
    assert claim is not None
    return claim


def users(cluster: MemoryCluster) -> list[str]:
    return sorted(consumer.name for consumer in claim_in(cluster).status.reserved_for)


def devices_held(it: World) -> int:
    ledger = it.scheduler.state.companion(ClusterDevices).ledger
    ledger.refresh()
    return len(ledger.devices_in_use())


def finish_side_by_side(it: World, *attempts: Attempt) -> None:
    async def run() -> None:
        await asyncio.gather(*(it.scheduler.finish(attempt) for attempt in attempts))

    asyncio.run(run())
    it.cluster.tell(it.scheduler)


@pytest.fixture
def claim_writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written to claims, in order."""
    written: list[str] = []
    patch, replace = MemoryCluster.patch, MemoryCluster.replace

    async def noted_patch(
        self: MemoryCluster, kind: str, name: str, body: Json, *, namespace: str = "", subresource: str = ""
    ) -> Json:
        written.append(f"patch {subresource}".rstrip())
        return await patch(self, kind, name, body, namespace=namespace, subresource=subresource)

    async def noted_replace(self: MemoryCluster, kind: str, obj: Json, *, subresource: str = "") -> Json:
        written.append(f"replace {subresource}".rstrip())
        return await replace(self, kind, obj, subresource=subresource)

    monkeypatch.setattr(MemoryCluster, "patch", noted_patch)
    monkeypatch.setattr(MemoryCluster, "replace", noted_replace)
    return written


def test_a_pod_is_placed_with_what_is_being_allocated_for_another() -> None:
    it = world(*sharing("a", "b"))
    assert [it.decided().node, it.decided().node] == ["n", "n"]
    assert devices_held(it) == 1


def test_a_pod_waits_for_the_allocation_as_in_kube_scheduler_where_no_attempt_is_spared() -> None:
    it = world(*sharing("a", "b"), spares=False)
    assert it.decided().node == "n"
    failure = it.decided().failure
    assert failure is not None
    assert "resource claim default/c is in the process of being allocated" in failure.message


def test_pods_that_share_a_claim_are_written_into_it_at_once(claim_writes: list[str]) -> None:
    it = world(*sharing("a", "b", "c"))
    attempts = [it.decided() for _ in range(3)]
    finish_side_by_side(it, *attempts)
    assert [attempt.outcome for attempt in attempts] == ["bound"] * 3
    assert users(it.cluster) == ["a", "b", "c"]
    assert len(claim_writes) == 2  # the finalizer, and the status with all of them
    assert devices_held(it) == 1


def test_pods_that_find_the_claim_allocated_are_written_into_it_at_once(claim_writes: list[str]) -> None:
    it = world(*sharing("a", "b", "c", "d"))
    it.tried()
    claim_writes.clear()
    finish_side_by_side(it, *(it.decided() for _ in range(3)))
    assert users(it.cluster) == ["a", "b", "c", "d"]
    # Whoever has the turn first does not know yet that others will come.
    assert len(claim_writes) <= 2


def test_nobody_who_was_written_is_left_waiting() -> None:
    it = world(*sharing("a", "b"))
    finish_side_by_side(it, it.decided(), it.decided())
    assert it.scheduler.state.companion(JoinedConsumers).is_empty


def test_a_pod_writes_the_allocation_if_the_one_that_it_was_found_for_could_not() -> None:
    it = world(*sharing("a", "b"))
    first, second = it.decided(), it.decided()
    it.cluster.claim_refusals.append(Refusal("InternalError"))
    it.finish(first)
    assert devices_held(it) == 1
    it.finish(second)
    assert (first.outcome, second.outcome) == ("bind-error", "bound")
    assert users(it.cluster) == ["b"]
    assert devices_held(it) == 1


def test_devices_are_free_once_the_last_pod_that_counted_on_them_has_failed() -> None:
    it = world(*sharing("a", "b"))
    attempts = it.decided(), it.decided()
    it.cluster.remove(claim_in(it.cluster))
    it.finish(attempts[0], tell=False)
    assert devices_held(it) == 1
    it.finish(attempts[1])
    assert devices_held(it) == 0


def test_a_pod_that_is_refused_its_binding_gives_only_its_own_reservation_back() -> None:
    it = world(*sharing("a", "b"))
    first, second = it.decided(), it.decided()
    it.cluster.bind_refusals.append(Refusal("InternalError"))
    finish_side_by_side(it, first, second)
    assert {first.outcome, second.outcome} == {"bind-error", "bound"}
    bound = first if first.outcome == "bound" else second
    assert users(it.cluster) == [bound.queued.pod.name]


def test_a_claim_that_is_being_allocated_for_another_is_not_given_back() -> None:
    """There is no room for the second pod where the devices are."""
    it = world(*sharing("a", "b", cpu="3"))
    first, second = it.decided(), it.decided()
    assert second.failure is not None
    assert "deallocation" not in second.failure.message
    it.finish(second)
    it.finish(first)
    assert first.outcome == "bound"
    assert users(it.cluster) == ["a"]


def test_a_recording_of_pods_that_share_a_claim_can_be_replayed() -> None:
    cluster, stream = MemoryCluster(), io.StringIO()
    zero = lambda: 0.0  # noqa: E731
    recording = Recording(stream, config.default(), zero, mode=SchedulerMode.BATCHED)
    scheduler = build_scheduler(
        SchedulerSettings(clock=zero, draw=lambda among: 0, now=zero, mode=SchedulerMode.BATCHED),
        config.default(),
        RecordingClient(cluster, recording),
        in_tree(),
        listeners=[recording],
    )
    pods = (builder.build() for builder in sharing("a", "b", "c"))
    for obj in (*NODES, make_class(), make_slice("n", device("d")), make_claim("c"), *pods):
        cluster.put(obj)
    cluster.tell(scheduler)
    attempts = []
    while (attempt := pop_pod(scheduler)) is not None:
        scheduler.decide(attempt)
        attempts.append(attempt)

    async def run() -> None:
        await asyncio.gather(*map(scheduler.finish, attempts))

    asyncio.run(run())
    cluster.tell(scheduler)
    assert [attempt.outcome for attempt in attempts] == ["bound"] * 3
    assert Replay(stream.getvalue().splitlines(), in_tree()).run() == []

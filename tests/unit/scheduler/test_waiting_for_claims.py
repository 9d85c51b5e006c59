"""Pods that wait for device claims: an event of a claim wakes those that name it, and asks nobody else."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from tests import virtual_time
from tests.device_builders import allocated, device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members
from tests.unit.scheduler.living import living
from tests.unit.scheduler.memory_cluster import MemoryCluster
from tests.unit.scheduler.world import World, names

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject, OwnerReference
from kubesched.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.framework.client import ClientError, Json
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.testing import make_node, make_pod

DEVICES = make_slice("n", device("d"), device("e"))


class Asked(SchedulerListener):
    """The pods about which a plugin was asked whether an event may help them."""

    def __init__(self) -> None:
        self.pods: list[str] = []

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        self.pods.append(queued.pod.name)


def listening(*objects: KubeObject) -> tuple[World, Asked]:
    world, asked = World(make_node("n"), make_class(), DEVICES, *objects), Asked()
    world.scheduler.listeners.append(asked)
    return world, asked


def waiting(*claims: str) -> list[KubeObject]:
    return [with_claims(make_pod(f"p-{claim}"), claim).build() for claim in claims]


def from_template(name: str, made: str | None = None) -> Pod:
    """A pod with a claim that is made from a template, and perhaps has been."""
    pod = make_pod(name).build()
    entry = PodResourceClaim(name="gpu", resource_claim_template_name="template")
    statuses = () if made is None else (PodResourceClaimStatus(name="gpu", resource_claim_name=made),)
    status = replace(pod.status, resource_claim_statuses=statuses)
    return replace(pod, spec=replace(pod.spec, resource_claims=(entry,)), status=status)


def made_for(pod: Pod, name: str) -> ResourceClaim:
    claim = make_claim(name)
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    return replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))


def test_new_claim_wakes_the_pod_that_names_it_and_asks_no_other() -> None:
    world, asked = listening(*waiting("a", "b", "c"))
    world.see(make_claim("b"))
    assert names(world.queue.active()) == ["p-b"]
    assert asked.pods == ["p-b"]


def test_claim_of_another_namespace_is_nobodys() -> None:
    world, asked = listening(*waiting("a"))
    claim = make_claim("a")
    world.see(replace(claim, metadata=replace(claim.metadata, namespace="elsewhere")))
    assert asked.pods == []


@pytest.mark.parametrize("claim_comes_first", [False, True])
def test_claim_made_from_a_template_wakes_its_pod_once_the_status_names_it(claim_comes_first: bool) -> None:
    """Its name is known only when the status of the pod tells it, which may be before the watch shows the claim."""
    world, asked = listening(from_template("p"), from_template("other"))
    parts: list[KubeObject] = [from_template("p", made="p-gpu-x7k"), made_for(from_template("p"), "p-gpu-x7k")]
    world.see(*reversed(parts) if claim_comes_first else parts)
    assert names(world.queue.active()) == ["p"]
    assert "other" not in asked.pods


def test_claim_that_gives_back_devices_may_help_anybody_who_waits_for_some() -> None:
    holder = allocated(make_claim("holder"), "n/d", "n/e")
    world, _ = listening(holder, make_claim("a"), *waiting("a"))
    assert world.tried().outcome == "unschedulable"
    world.see(make_claim("holder"))
    assert names(world.queue.backoff()) == ["p-a"]


def test_new_slice_asks_all_who_wait_for_devices() -> None:
    world, _ = listening(allocated(make_claim("holder"), "n/d", "n/e"), make_claim("a"), *waiting("a"))
    world.tried()
    world.see(make_slice("n", device("f"), pool="more"))
    assert names(world.queue.backoff()) == ["p-a"]


def test_gang_is_woken_by_the_claim_of_any_member() -> None:
    """What one of its pods waits for does not tell what the others do."""
    first, second = members("g", 2)
    world = GroupWorld(
        make_node("n").capacity(cpu="4"),
        make_class(),
        DEVICES,
        make_gang("g", 2),
        with_claims(first, "a"),
        with_claims(second, "b"),
    )
    world.see(make_claim("a"))
    world.see(make_claim("b"))
    world.try_all()
    assert len(world.bound()) == 2


def test_claim_that_is_as_the_watch_showed_it_is_written_without_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    async def get(cluster: MemoryCluster, kind: str, name: str, namespace: str = "") -> Json:
        raise AssertionError("it is known")

    monkeypatch.setattr(MemoryCluster, "get", get)
    world = World(make_node("n"), make_class(), DEVICES, make_claim("a"), *waiting("a"))
    assert world.tried().outcome == "bound"


def test_claim_that_changed_meanwhile_is_asked_for_and_written() -> None:
    world = World(make_node("n"), make_class(), DEVICES, make_claim("a"), *waiting("a"))
    attempt = world.decided()
    claim = world.cluster.claim("default/a")
    assert claim is not None
    world.cluster.put(replace(claim, metadata=replace(claim.metadata, labels={"changed": "yes"})))
    assert world.finish(attempt).outcome == "bound"
    claim = world.cluster.claim("default/a")
    assert claim is not None
    assert claim.metadata.labels == {"changed": "yes"}
    assert claim.is_reserved_for(world.cluster.pod("p-a").uid)


def test_pods_that_share_a_claim_are_written_into_it_one_after_another() -> None:
    class Strict(MemoryCluster):
        conflicts = 0

        async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
            await asyncio.sleep(1)
            try:
                return await super().replace(kind, obj, subresource=subresource)
            except ClientError:
                self.conflicts += 1
                raise

    async def story() -> None:
        cluster = Strict()
        async with living(cluster) as world:
            shared = allocated(make_claim("shared"), "n/d")
            world.see(make_node("n"), make_class(), DEVICES, shared)
            world.see(*(with_claims(make_pod(f"p-{i}"), "shared") for i in range(4)))
            await asyncio.sleep(10)
            assert world.outcomes == ["bound"] * 4
            assert cluster.conflicts == 0

    virtual_time.run(story())

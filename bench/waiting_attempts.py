"""Measures attempts that wait for volumes which are never provisioned: memory of each, and time of other pods."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bench import clusters
from bench.loop import Binder, Loop
from kubesched.api.change import Change
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, Volume
from kubesched.framework.client import Awaited, Json
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.loop import SchedulingLoop

NODES = 5000
OTHERS = 2000


class Waiting(NamedTuple):
    """With so many attempts waiting."""

    held_kb: float
    """By each of them, its pod and its claim included."""
    other_us: float
    """CPU per pod that waits for nothing, from its arrival until the watch has shown it bound."""
    event_us: float
    """CPU per change of a claim that one of them waits for, in vain."""


class Storage(Binder):
    """A cluster whose storage driver is dead: claims are patched, and that is all."""

    def __init__(self, waiter: ObjectWaiter) -> None:
        super().__init__()
        self._waiter = waiter

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        return patch

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return await self._waiter.wait(pod, is_met, objects=objects, within=within)


def measured(attempts: int) -> Waiting:
    return asyncio.run(_measured(attempts))


async def _measured(attempts: int) -> Waiting:
    waiter = ObjectWaiter()
    cluster = Loop(NODES, Storage(waiter))
    scheduler = cluster.scheduler
    scheduler.listeners.append(waiter)
    scheduler.handle(Change(new=_made("StorageClass", {"name": "dead"}, provisioner="dead.example.com")))
    loop = SchedulingLoop(scheduler)
    running = asyncio.create_task(loop.run())
    await _others(cluster, OTHERS, OTHERS)  # what is kept for all pods alike, such as answers, is there before
    gc.collect()
    tracemalloc.start()
    claims = [_made("PersistentVolumeClaim", {"name": f"c-{i}", "namespace": "default"}) for i in range(attempts)]
    for i, claim in enumerate(claims):
        scheduler.handle(Change(new=claim))
        scheduler.handle(Change(new=_with_volume(i)))
    while loop.unfinished < attempts:
        await asyncio.sleep(0.01)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1e3
    tracemalloc.stop()
    other = await _others(cluster, OTHERS, 0)
    before = time.process_time()
    for claim in claims[:1000]:
        scheduler.handle(Change(claim, replace(claim, metadata=replace(claim.metadata, resource_version="2"))))
    await asyncio.sleep(0)
    event = (time.process_time() - before) * 1e3
    await loop.stop(within=0)
    await running
    return Waiting(held / max(attempts, 1), other, event)


async def _others(cluster: Loop, count: int, first: int) -> float:
    bound = cluster.binder.bound
    before = time.process_time()
    for i in range(first, first + count):
        cluster.scheduler.handle(Change(new=clusters.pod(i, "other")))
    while cluster.binder.bound < bound + count or cluster.binder.unseen:
        await asyncio.sleep(0)
        while cluster.binder.unseen:
            cluster.scheduler.handle(cluster.binder.unseen.popleft())
    return (time.process_time() - before) * 1e6 / count


def _with_volume(i: int) -> Pod:
    pod = clusters.pod(i, "stateful")
    claim = PersistentVolumeClaimSource(claim_name=f"c-{i}")
    return replace(pod, spec=replace(pod.spec, volumes=(Volume(name="data", persistent_volume_claim=claim),)))


def _made(kind: str, metadata: dict[str, str], **fields: str) -> KubeObject:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    specific: Json = (
        {"volumeBindingMode": "WaitForFirstConsumer"} if fields else {"spec": {**spec, "storageClassName": "dead"}}
    )
    metadata = {**metadata, "uid": metadata["name"], "resourceVersion": "1"}
    made: KubeObject = msgspec.convert({"metadata": metadata, **specific, **fields}, KINDS[kind].record)
    return made

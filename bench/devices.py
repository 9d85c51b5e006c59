"""Measuring dynamic resource allocation: pods whose claims want one or two of eight devices on each of many nodes."""

from __future__ import annotations

import random
from collections import deque

from msgspec.structs import replace

from bench import clusters
from bench.loop import BOUND
from bench.measure import cpu_us
from kubesched import config
from kubesched.api.device_claims import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.api.devices import (
    CelSelector,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.api.pod import Pod, PodCondition, PodResourceClaim, PodResourceClaimStatus
from kubesched.plugins.dynamic_resources.writes import (
    ClaimWrite,
    DeallocateClaim,
    ReserveClaim,
    UnreserveClaim,
    applied,
)
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.run_now import run_now
from kubesched.scheduler.scheduler import Scheduler

NODES = 5000
DEVICES = 8
DRIVER = "gpu.example.com"
MODELS = ("a100", "h100")


def device_class() -> DeviceClass:
    expression = CelSelector(expression=f'device.driver == "{DRIVER}"')
    return DeviceClass(
        metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(selectors=(DeviceSelector(cel=expression),))
    )


def resource_slice(i: int) -> ResourceSlice:
    """The devices of one node: two models by turns, each device with an id of its own."""
    name = f"node-{i:05d}"
    devices = tuple(
        Device(
            name=f"gpu-{k}",
            attributes={
                "model": DeviceAttribute(string_value=MODELS[k % 2]),
                "numa": DeviceAttribute(int_value=k // 4),
                "uuid": DeviceAttribute(string_value=f"GPU-{i:05d}-{k}"),
            },
            capacity={"memory": DeviceCapacity(value="80Gi")},
        )
        for k in range(DEVICES)
    )
    spec = ResourceSliceSpec(driver=DRIVER, pool=ResourcePool(name=name), node_name=name, devices=devices)
    return ResourceSlice(metadata=ObjectMeta(name=f"{name}-gpus"), spec=spec)


def claim_spec(i: int) -> ResourceClaimSpec:
    """One or two devices of a model, by turns."""
    model, count = MODELS[i // 2 % 2], 1 + i % 2
    expression = (
        f'device.attributes["{DRIVER}"].model == "{model}" && '
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
    )
    selector = DeviceSelector(cel=CelSelector(expression=expression))
    exactly = ExactDeviceRequest(device_class_name="gpu", count=count, selectors=(selector,))
    return ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="gpus", exactly=exactly),)))


def pod_with_claim(i: int) -> tuple[Pod, ResourceClaim]:
    """A pod with a claim made from a template, as its status says."""
    pod = clusters.pod(i, f"gpu-{i % 4}")
    entry = PodResourceClaim(name="gpus", resource_claim_template_name=f"template-{i % 4}")
    made = PodResourceClaimStatus(name="gpus", resource_claim_name=f"{pod.name}-gpus")
    pod = replace(
        pod,
        spec=replace(pod.spec, resource_claims=(entry,)),
        status=replace(pod.status, resource_claim_statuses=(made,)),
    )
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ObjectMeta(name=f"{pod.name}-gpus", namespace=pod.namespace, uid=f"c{i}", owner_references=(owner,))
    return pod, ResourceClaim(metadata=meta, spec=claim_spec(i))


class DeviceLoop:
    """A scheduler on a cluster with devices; everything that is written is told by the watch."""

    def __init__(self, nodes: int = NODES) -> None:
        self.bound = 0
        self._pods = self._version = 0
        self._claims: dict[str, ResourceClaim] = {}
        self._unseen: deque[tuple[KubeObject, KubeObject]] = deque()
        self._scheduler = Scheduler(config.default(), self, clock=lambda: 0.0, draw=random.Random(0).randrange)
        self._scheduler.added(device_class())
        for i in range(nodes):
            self._scheduler.added(clusters.node(i))
            self._scheduler.added(resource_slice(i))

    def add(self, pods: int) -> None:
        for i in range(self._pods, self._pods + pods):
            pod, claim = pod_with_claim(i)
            self._claims[claim.key] = claim
            self._scheduler.added(claim)
            self._scheduler.added(pod)
        self._pods += pods

    def run(self, attempts: int) -> None:
        for _ in range(attempts):
            attempt = self._scheduler.pop()
            assert attempt is not None
            self._scheduler.decide(attempt)
            run_now(self._scheduler.finish(attempt))
            while self._unseen:
                self._scheduler.updated(*self._unseen.popleft())

    def placing(self, pods: int) -> float:
        """CPU microseconds per pod, from its turn until the watch has shown it bound with its devices."""
        self.add(pods)
        before = self.bound
        spent = cpu_us(lambda: self.run(pods))
        assert self.bound == before + pods
        return spent / pods

    # -- what is written ----------------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.bound += 1
        seen = replace(
            pod,
            metadata=replace(pod.metadata, resource_version=str(self.bound)),
            spec=replace(pod.spec, node_name=node_name),
            status=replace(pod.status, conditions=(BOUND,)),
        )
        self._unseen.append((pod, seen))

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        assert isinstance(write, ReserveClaim | UnreserveClaim | DeallocateClaim)
        stored = self._claims[write.claim.key]
        self._version += 1
        claim = applied(write, stored)
        claim = replace(claim, metadata=replace(claim.metadata, resource_version=str(self._version)))
        self._claims[claim.key] = claim
        self._unseen.append((stored, claim))
        return claim

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        pass

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        raise AssertionError("nobody preempts in these benchmarks")

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        raise AssertionError("there are no volumes in these benchmarks")

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        pass


def growing(pods: int = 1000, rounds: int = 8) -> list[float]:
    """CPU microseconds per pod, round after round, as more and more claims are allocated."""
    loop = DeviceLoop()
    loop.add(4)
    loop.run(4)  # the first of each kind
    return [loop.placing(pods) for _ in range(rounds)]

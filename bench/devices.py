"""Measuring dynamic resource allocation: pods whose claims want one or two of eight devices on each of many nodes."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from bench import clusters
from bench.loop import Binder, Loop
from bench.measure import cpu_us
from kubesched.api.change import Change
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
from kubesched.api.merge_patch import apply_merge_patch
from kubesched.api.meta import ObjectMeta, OwnerReference
from kubesched.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.framework.client import Json

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


class DeviceBinder(Binder):
    """Takes what is written to claims as well."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, ResourceClaim] = {}
        self._version = 0

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return _plain(self.claims[f"{namespace}/{name}"])

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        return await self.replace(kind, apply_merge_patch(_plain(self.claims[f"{namespace}/{name}"]), patch))

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        self._version += 1
        claim = msgspec.convert(obj, ResourceClaim)
        claim = replace(claim, metadata=replace(claim.metadata, resource_version=str(self._version)))
        self.unseen.append(Change(self.claims[claim.key], claim))
        self.claims[claim.key] = claim
        return _plain(claim)


def _plain(claim: ResourceClaim) -> Json:
    return msgspec.to_builtins(claim)  # type: ignore[no-any-return]


class DeviceLoop:
    """A scheduler on a cluster with devices; the watch delivers everything that is written."""

    def __init__(self, nodes: int = NODES) -> None:
        self._pods = 0
        self._binder = DeviceBinder()
        self._loop = Loop(nodes, self._binder)
        self._loop.scheduler.handle(Change(new=device_class()))
        for i in range(nodes):
            self._loop.scheduler.handle(Change(new=resource_slice(i)))

    def add(self, pods: int) -> None:
        for i in range(self._pods, self._pods + pods):
            pod, claim = pod_with_claim(i)
            self._binder.claims[claim.key] = claim
            self._loop.scheduler.handle(Change(new=claim))
            self._loop.scheduler.handle(Change(new=pod))
        self._pods += pods

    def run(self, attempts: int) -> None:
        self._loop.run(attempts)

    def placing(self, pods: int) -> float:
        """CPU microseconds per pod, from its turn until the watch has shown it bound with its devices."""
        self.add(pods)
        before = self._binder.bound
        spent = cpu_us(lambda: self.run(pods))
        assert self._binder.bound == before + pods
        return spent / pods


def growing(pods: int = 1000, rounds: int = 8) -> list[float]:
    """CPU microseconds per pod, round after round, as more and more claims are allocated."""
    loop = DeviceLoop()
    loop.add(4)
    loop.run(4)  # the first of each kind
    return [loop.placing(pods) for _ in range(rounds)]

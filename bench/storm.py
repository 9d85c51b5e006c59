"""Measuring storms of preemptors: as many urgent pods as there are nodes, and every node full of lesser ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from bench import clusters
from bench.loop import Binder, Loop
from bench.measure import cpu_us
from kubesched.api.change import Change
from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, PodCondition, Volume
from kubesched.api.storage import (
    ClaimStatus,
    CSIVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from kubesched.framework.client import Awaited, SchedulerMode
from kubesched.scheduler.run_now import run_now

SIZES = (500, 1000)
LESSER_PER_NODE = 4
_LATER = 50
"""So many attempts after its eviction a victim is gone."""


class Evictor(Binder):
    """Also evicts in memory: a victim has a condition first, then a time of deletion, and a while later it is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.leaving: deque[Pod] = deque()
        self._writes = 0

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        status = pod.status
        if condition is not None:
            others = tuple(other for other in status.conditions if other.type != condition.type)
            status = replace(status, conditions=(*others, condition))
        if nominated_node_name is not None:
            status = replace(status, nominated_node_name=nominated_node_name)
        self._write(pod, replace(pod, status=status))

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        status = replace(pod.status, conditions=(*pod.status.conditions, condition))
        marked = self._write(pod, replace(pod, status=status))
        gone_at = replace(marked.metadata, deletion_timestamp="2026-01-01T00:00:30Z")
        self.leaving.append(self._write(marked, replace(marked, metadata=gone_at)))

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return True

    def _write(self, old: Pod, new: Pod) -> Pod:
        self._writes += 1
        seen = replace(new, metadata=replace(new.metadata, resource_version=f"w{self._writes}"))
        self.unseen.append(Change(old, seen))
        return seen


class Storm:
    """A cluster without room, into which the urgent pods come all at once."""

    def __init__(self, nodes: int, *, volumes: bool = False) -> None:
        """With `volumes`, each urgent pod has a volume of its own: no two of them are equivalent."""
        self.evictor = Evictor()
        self._loop = Loop(nodes, self.evictor, SchedulerMode.BATCHED)  # as a daemon has it
        self.attempts = 0
        scheduler = self._loop.scheduler
        for i in range(nodes * LESSER_PER_NODE):
            name = f"node-{i % nodes:05d}"
            scheduler.handle(Change(new=clusters.pod(i, "lesser", cpu="7200m", node_name=name)))
        for i in range(nodes):
            urgent = clusters.pod(i, "urgent", cpu="24", priority=10)
            for each in _with_volume(i, urgent) if volumes else (urgent,):
                scheduler.handle(Change(new=each))

    def run(self) -> None:
        """Until no pod can be tried and no victim is still leaving."""
        scheduler, unseen, leaving = self._loop.scheduler, self.evictor.unseen, self.evictor.leaving
        while True:
            attempt = scheduler.pop()
            if attempt is not None:
                self.attempts += 1
                scheduler.decide(attempt)
                run_now(scheduler.finish(attempt))
            elif not leaving:
                return
            while unseen:
                scheduler.handle(unseen.popleft())
            while leaving and (attempt is None or len(leaving) > _LATER * LESSER_PER_NODE):
                scheduler.handle(Change(old=leaving.popleft()))


def _with_volume(i: int, pod: Pod) -> tuple[PersistentVolumeClaim, PersistentVolume, Pod]:
    """A claim, its volume that every node reaches, and the pod that uses them."""
    claim, disk = f"claim-{i}", f"disk-{i}"
    spec = PersistentVolumeClaimSpec(access_modes=("ReadOnlyMany",), volume_name=disk)
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    named = ObjectMeta(name=claim, namespace=pod.namespace, uid=claim, annotations=bound)
    reference = ObjectReference(namespace=pod.namespace, name=claim, uid=claim)
    source = CSIVolumeSource(driver="csi.example.com", volume_handle=disk)
    used = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimSource(claim))
    return (
        PersistentVolumeClaim(metadata=named, spec=spec, status=ClaimStatus("Bound")),
        PersistentVolume(
            metadata=ObjectMeta(name=disk, uid=disk),
            spec=PersistentVolumeSpec(capacity={"storage": "1Gi"}, claim_ref=reference, csi=source),
            status=ClaimStatus("Bound"),
        ),
        replace(pod, spec=replace(pod.spec, volumes=(used,))),
    )


def cpu_ms_per_preemptor(nodes: int, *, volumes: bool = False) -> float:
    """From the first attempt to the last binding: failing, evicting, being woken, binding."""
    storm = Storm(nodes, volumes=volumes)
    spent = cpu_us(storm.run)
    assert storm.evictor.bound == nodes
    return spent / nodes / 1000

"""VolumeRestrictions: disks and claims that only one pod at a time may use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import NamedTuple

from kubesched.api.pod import Pod, Volume
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind, Lookup
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unresolvable, unschedulable
from kubesched.plugins.shared.hinting import CLAIMS, after_named_claim, queue_if, waits_for, waits_for_pods
from kubesched.plugins.shared.volume_claims import claim_not_found
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32
from kubesched.state.facts import PodFacts, StateKey, claim_names
from kubesched.state.pods import PlacedPod

DISK_TAKEN = unschedulable("node(s) had no available disk")
CLAIM_IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_ONE_POD = "ReadWriteOncePod"


class Disk(NamedTuple):
    """A disk that a pod names without a claim."""

    kind: str
    identity: tuple[str, ...]
    is_shareable: bool
    """Mounted in a way in which others may mount it as well."""
    monitors: frozenset[str] = frozenset()

    def collides_with(self, other: Disk) -> bool:
        """Whether the two cannot be on one node. Ceph images are the same only if found through a common monitor."""
        if self.kind != other.kind or self.identity != other.identity or (self.is_shareable and other.is_shareable):
            return False
        return self.kind != "rbd" or not self.monitors.isdisjoint(other.monitors)


class SingleUseClaims:
    """The pod's claims that allow one pod only, and how many uses of them by placed pods there are."""

    def __init__(self, names: frozenset[str], users: int) -> None:
        self.names = names
        self.users = users

    def count(self, pod: Pod, sign: int) -> None:
        # Names without their namespace, as in kube-scheduler: only preemption sees the difference.
        self.users += sign * sum(name in self.names for name in claim_names(pod))


_CLAIMS = StateKey[SingleUseClaims]("VolumeRestrictions")


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where a disk is mounted already, and all nodes while a ReadWriteOncePod claim is in use."""

    name = "VolumeRestrictions"
    adjusts = True
    pre_filter_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.CLAIMS)
    filter_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.CLUSTER)

    def events_to_register(self) -> tuple[Interest, ...]:
        return (
            *waits_for_pods(
                self.context.features.release,
                placed=Action.DELETE,
                placed_hint=_after_pod_left,
                lookup=Lookup(_claims_and_disks, _claims_and_disks_left),
            ),
            waits_for(Kind.NODE, Action.ADD),
            waits_for(Kind.PERSISTENT_VOLUME_CLAIM, Action.ADD, after_named_claim, CLAIMS),
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if not cycle.pod.spec.volumes:
            return SKIP
        objects, namespace = cycle.state.objects, cycle.pod.namespace
        single_use: set[str] = set()
        for name in claim_names(cycle.pod):
            claim = objects.get(PersistentVolumeClaim, name, namespace)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if _ONE_POD in claim.spec.access_modes:
                single_use.add(name)
        in_use = cycle.state.pods.claim_users
        users = sum(f"{namespace}/{name}" in in_use for name in single_use)
        if not users and not disks_of(cycle.pod, cycle.facts):
            return SKIP
        cycle.write(_CLAIMS, SingleUseClaims(frozenset(single_use), users))
        return None

    def add_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(_CLAIMS).count(pod.pod, 1)

    def remove_pod(self, cycle: Cycle, pod: PlacedPod, row: int) -> None:
        cycle.read(_CLAIMS).count(pod.pod, -1)

    def sign(self, cycle: Cycle) -> Hashable:
        return disks_of(cycle.pod, cycle.facts), cycle.read(_CLAIMS).users > 0

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        disks = disks_of(cycle.pod, cycle.facts)
        collides = nodes.none()
        if disks:
            for i in range(len(nodes)):
                collides[i] = any(_collide(disks, disks_of(p.pod, p.facts)) for p in nodes.pods(i))
        ids = self.reject(collides, DISK_TAKEN)
        if cycle.read(_CLAIMS).users > 0:
            ids[~collides] = self.rejections.id_of(CLAIM_IN_USE)
        return ids

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        is_same_claim = not cycle.read(_CLAIMS).names.isdisjoint(claim_names(pod.pod))
        return is_same_claim or _collide(disks_of(cycle.pod, cycle.facts), disks_of(pod.pod, pod.facts))

    def depends_on_pods(self, cycle: Cycle) -> bool:
        return bool(cycle.read(_CLAIMS).names or disks_of(cycle.pod, cycle.facts))


def _after_pod_left(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """The pod that left, of the same namespace, had a disk or a claim which this one wants."""
    if pod.namespace != old.namespace:
        return Hint.SKIP
    shares_claim = not set(claim_names(pod)).isdisjoint(claim_names(old))
    return queue_if(shares_claim or _collide(disks_of(pod, state.facts(pod)), disks_of(old, state.facts(old))))


def _claims_and_disks(pod: Pod, state: ClusterState) -> Iterator[Hashable]:
    """The claims and disks of a pod."""
    yield from ((pod.namespace, "claim", name) for name in claim_names(pod))
    yield from ((pod.namespace, disk.kind, disk.identity) for disk in disks_of(pod, state.facts(pod)))


def _claims_and_disks_left(old: Pod, new: None, state: ClusterState) -> Iterator[Hashable]:
    return _claims_and_disks(old, state)


def _collide(disks: Collection[Disk], other_disks: Collection[Disk]) -> bool:
    return any(disk.collides_with(other) for other in other_disks for disk in disks)


def disks_of(pod: Pod, facts: PodFacts) -> tuple[Disk, ...]:
    """The disks a pod names that others may collide with."""
    return facts.without_node_names.derived(_disks_of, pod)


def _disks_of(pod: Pod) -> tuple[Disk, ...]:
    return tuple(disk for volume in pod.spec.volumes for disk in _disks(volume))


def _disks(volume: Volume) -> list[Disk]:
    gce, ebs, iscsi, rbd = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
    disks: list[Disk] = []
    if gce is not None:
        disks.append(Disk("gce", (gce.pd_name,), gce.read_only))
    if ebs is not None:
        disks.append(Disk("ebs", (ebs.volume_id,), is_shareable=False))
    if iscsi is not None:
        disks.append(Disk("iscsi", (iscsi.iqn,), iscsi.read_only))
    if rbd is not None:
        disks.append(Disk("rbd", (rbd.pool, rbd.image), rbd.read_only, frozenset(rbd.monitors)))
    return disks

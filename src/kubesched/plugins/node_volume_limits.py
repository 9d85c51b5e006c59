"""NodeVolumeLimits: a node can attach only so many volumes of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from kubesched.api.pod import Pod, Volume
from kubesched.api.storage import CSIDriver, CSINode, VolumeAttachment
from kubesched.framework.client import SchedulerMode
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unschedulable
from kubesched.plugins.shared.attached_volumes import AttachedVolumes
from kubesched.plugins.shared.csi_migration import TranslationError, inline_handle_of, migration_of
from kubesched.plugins.shared.csi_nodes import CSINodeColumns
from kubesched.plugins.shared.hinting import CLAIMS, after_used_claim, has_node, queue_if, waits_for, waits_for_pods
from kubesched.plugins.shared.volume_attachments import (
    AttachedVolume,
    VolumeFaultError,
    attachable_count,
    volumes_wanted,
)
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32
from kubesched.state.facts import claim_names
from kubesched.state.pods import PlacedPod

TOO_MANY = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where the pod's volumes would be more than a driver can attach."""

    name = "NodeVolumeLimits"
    pre_filter_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES, Scope.NOTHING)
    filter_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.CLUSTER)

    def events_to_register(self) -> tuple[Interest, ...]:
        is_batched = self.context.handle.mode is SchedulerMode.BATCHED
        return (
            waits_for(Kind.CSI_NODE, Action.ADD),
            waits_for(Kind.CSI_NODE, Action.UPDATE, _after_csi_node),
            *((waits_for(Kind.CSI_NODE, Action.UPDATE | Action.DELETE, _after_limit_ended),) if is_batched else ()),
            *waits_for_pods(self.context.features.release, placed=Action.DELETE, placed_hint=_after_pod_left),
            waits_for(Kind.PERSISTENT_VOLUME_CLAIM, Action.ADD, after_used_claim, CLAIMS),
            waits_for(Kind.VOLUME_ATTACHMENT, Action.DELETE, _after_detaching),
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.pod.spec.volumes and attachable_count(cycle.pod, cycle.facts) else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        cycle.state.companion(CSINodeColumns).refresh()
        try:
            volumes = volumes_wanted(cycle.pod, cycle.state.objects)
        except VolumeFaultError as fault:
            return self._reject_for(fault, cycle, nodes)
        ids = self.reject(self._over_limit(volumes, nodes), TOO_MANY)
        if self.context.features.missing_volume_drivers:
            self._reject_without_drivers(ids, volumes, cycle, nodes)
        return ids

    def depends_on_pod(self, cycle: Cycle, pod: PlacedPod) -> bool:
        """Volumes of other pods take their share of a limit, where there is any."""
        return self.depends_on_pods(cycle) and attachable_count(pod.pod, pod.facts) > 0

    def depends_on_pods(self, cycle: Cycle) -> bool:
        csi_nodes = cycle.state.companion(CSINodeColumns)
        csi_nodes.refresh()
        return csi_nodes.has_limits

    def _reject_for(self, fault: VolumeFaultError, cycle: Cycle, nodes: Nodes) -> Int32:
        """Nodes without a CSINode have nothing to do with in-tree disks, but one of the claims may be at fault."""
        ids = self.reject(~nodes.none(), fault.status)
        if fault.only_with_csi:
            elsewhere = ~nodes.take(cycle.state.companion(CSINodeColumns).present)
            try:
                volumes_wanted(cycle.pod, cycle.state.objects, migrating=False)
            except VolumeFaultError as other:
                ids[elsewhere] = self.rejections.id_of(other.status)
            else:
                ids[elsewhere] = 0
        return ids

    def _reject_without_drivers(self, ids: Int32, volumes: Set[AttachedVolume], cycle: Cycle, nodes: Nodes) -> None:
        """Reject nodes that lack a driver; of several, the first by name is reported."""
        objects, csi_nodes = cycle.state.objects, cycle.state.companion(CSINodeColumns)
        unmigrated = {volume.driver for volume in volumes_wanted(cycle.pod, objects, migrating=False)}
        for driver in sorted({volume.driver for volume in volumes}, reverse=True):
            csi_driver = objects.get(CSIDriver, driver)
            if csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing:
                missing = self.rejections.id_of(unschedulable(f"{driver} CSI driver is not installed on the node"))
                lacking = csi_nodes.lacking(driver)
                if driver not in unmigrated:
                    lacking &= csi_nodes.present
                ids[nodes.take(lacking)] = missing

    def _over_limit(self, volumes: Set[AttachedVolume], nodes: Nodes) -> Bool:
        csi_nodes, attached = nodes.state.companion(CSINodeColumns), nodes.state.companion(AttachedVolumes)
        limits = {
            driver: (nodes.take(limit), {volume for volume in volumes if volume.driver == driver})
            for driver in {volume.driver for volume in volumes}
            if (limit := csi_nodes.limit(driver)) is not None
        }
        over = nodes.none()
        if not limits:
            return over
        attached.refresh()
        if nodes.rows is None:
            for driver, (limit, of_driver) in limits.items():
                more = len(of_driver) - nodes.take(attached.in_use_already(of_driver))
                over |= (more > 0) & (nodes.take(attached.count(driver)) + more > limit)
            return over
        # In a view of some rows there may be other pods than the table says.
        for i in range(len(nodes)):
            in_use = set[AttachedVolume]().union(*(attached.of_pod(placed) for placed in nodes.pods(i)))
            # A volume that is attached but in use by no pod counts, even against a pod that wants this very volume.
            counts = Counter(volume.driver for volume in in_use | attached.without_pods(nodes.row(i)))
            over[i] = any(
                (missing := len(of_driver - in_use)) and counts[driver] + missing > limit[i]
                for driver, (limit, of_driver) in limits.items()
            )
        return over


def _after_csi_node(pod: Pod, old: CSINode, new: CSINode, state: ClusterState) -> Hint:
    """A driver, whichever, may attach more than before."""
    before, after = _limits(old), _limits(new)
    return queue_if(any(limit > before.get(driver, 0) for driver, limit in after.items()))


def _after_limit_ended(pod: Pod, old: CSINode, new: CSINode | None, state: ClusterState) -> Hint:
    """A driver of a node has no limit any more. kube-scheduler takes that for none at all."""
    return queue_if(not _limits(old).keys() <= (set() if new is None else _limits(new).keys()))


def _limits(csi_node: CSINode) -> dict[str, int]:
    """How many volumes of each driver the node may attach, where that is limited."""
    limits = ((driver.name, driver.allocatable) for driver in csi_node.spec.drivers)
    return {name: limit.count for name, limit in limits if limit is not None and limit.count is not None}


def _after_pod_left(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """The pod that left had volumes attached."""
    return queue_if(has_node(old) and attachable_count(old, state.facts(old)) > 0)


def _after_detaching(pod: Pod, old: VolumeAttachment, new: None, state: ClusterState) -> Hint:
    """A volume was detached: for claims by any driver will do, for disks that the pod names by that of the disk."""
    return queue_if(bool(claim_names(pod)) or any(_may_wait_for(v, old.spec.attacher) for v in pod.spec.volumes))


def _may_wait_for(volume: Volume, driver: str) -> bool:
    """Whether a disk is one of the driver's; as in kube-scheduler, also one that no driver can name."""
    migration = migration_of(volume)
    if migration is None:
        return False
    try:
        inline_handle_of(volume)
    except TranslationError:
        return True
    return migration.driver == driver

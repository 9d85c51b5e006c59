"""The VolumeBinding plugin: filters by volumes, sets them aside for the pod, and has them bound before the pod is."""

from __future__ import annotations

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubesched.api.well_known import MIGRATED_PLUGINS
from kubesched.config.args import VolumeBindingArgs
from kubesched.framework.client import ClientError, SchedulerMode
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import (
    FilterPlugin,
    PluginContext,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, error, unresolvable
from kubesched.plugins.advice.volumes import VolumeAdvice
from kubesched.plugins.shared.hinting import CLAIMS, after_used_claim, has_node, queue_if, waits_for, waits_for_pods
from kubesched.plugins.shared.volume_claims import claims_used, is_bound
from kubesched.plugins.volume_binding.matching import NO_VOLUME
from kubesched.plugins.volume_binding.provisioning import largest_volume
from kubesched.plugins.volume_binding.scoring import CapacityScorer
from kubesched.plugins.volume_binding.search import PodClaims, VolumeFindings, VolumeSearch, claims_of, why_not_ready
from kubesched.plugins.volume_binding.writes import RESERVED, VolumeWrites, bind_volumes, bound_to, made_for
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64
from kubesched.state.facts import StateKey

_REASONS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""The reasons of the four kinds of trouble, in the order of `VolumeFindings.troubles`."""

_NEW_OR_CHANGED = Action.ADD | Action.UPDATE

_NO_CLAIMS = PodClaims()
_CLAIMS = StateKey[PodClaims]("VolumeBinding")


class VolumeBinding(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin, VolumeAdvice
):
    """Bound volumes must be in reach; for claims that wait for their first consumer one must be found or made."""

    name = "VolumeBinding"
    pre_filter_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.CLAIMS)
    filter_reads = score_reads = Reads(PodFields.SPEC | PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.OBJECTS)
    pre_score_reads = Reads(PodFields.NONE, Scope.NOTHING)

    def __init__(self, args: VolumeBindingArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        scores = self.context.features.storage_capacity_scoring
        self._scorer = CapacityScorer(args.shape if args else None) if scores else None
        self._id_of_troubles = self._number_troubles()
        self.bind_within = float((args or VolumeBindingArgs()).bind_timeout_seconds)

    def events_to_register(self) -> tuple[Interest, ...]:
        overlooked = (
            *waits_for_pods(self.context.features.release, placed=Action.DELETE, placed_hint=after_giving_back),
            waits_for(Kind.CSI_DRIVER, Action.UPDATE | Action.DELETE, after_capacity_ceased_to_matter),
        )
        return (
            waits_for(Kind.STORAGE_CLASS, _NEW_OR_CHANGED, after_class),
            waits_for(Kind.PERSISTENT_VOLUME_CLAIM, _NEW_OR_CHANGED, after_used_claim, CLAIMS),
            waits_for(Kind.PERSISTENT_VOLUME, _NEW_OR_CHANGED),
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            waits_for(Kind.CSI_NODE, _NEW_OR_CHANGED, after_csi_node),
            waits_for(Kind.CSI_DRIVER, Action.UPDATE, after_driver),
            waits_for(Kind.CSI_STORAGE_CAPACITY, _NEW_OR_CHANGED, after_capacity),
            *(overlooked if self.context.handle.mode is SchedulerMode.BATCHED else ()),
        )

    # -- where volumes are --------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pod, objects = cycle.pod, cycle.state.objects
        if not pod.spec.volumes or not claims_used(pod):
            return SKIP
        missing = why_not_ready(pod, objects)
        if missing:
            return unresolvable(missing)
        claims = claims_of(pod, cycle.state.companion(VolumeSearch).claims, objects)
        if isinstance(claims, Status):
            return claims
        cycle.write(_CLAIMS, claims)
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        findings = self._find(cycle, nodes)
        troubles = np.zeros(len(nodes), dtype=np.intp)
        for bit, rows in enumerate(findings.troubles):
            troubles += rows << bit
        ids: Int32 = self._id_of_troubles[troubles]
        for rows, reason in findings.untranslatable:
            ids[rows] = self.rejections.id_of(error(reason))
        return ids

    def _number_troubles(self) -> Int32:
        """The rejection id of every combination of troubles, a bit each."""
        combinations = [[reason for bit, reason in enumerate(_REASONS) if n >> bit & 1] for n in range(16)]
        ids = [self.rejections.id_of(unresolvable(*reasons) if reasons else None) for reasons in combinations]
        return np.array(ids, dtype=np.int32)

    # -- which node is best -------------------------------------------------------------------------------------------

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        if self._scorer is None:
            return SKIP
        # Where a profile disables its pre-filter, there is nothing to score by, and kube-scheduler says so.
        was_asked = self.name in cycle.skipped_filters or cycle.find(_CLAIMS) is not None
        return None if was_asked else error("not found")

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        claims = self._claims(cycle)
        if self._scorer is None or not claims.delayed:
            return 0
        return self._scorer.scores(self._find(cycle, nodes), cycle.state.companion(VolumeSearch), nodes)

    # -- once a node is chosen ----------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        claims = self._claims(cycle)
        if not claims.delayed:
            return None
        search = cycle.state.companion(VolumeSearch)
        findings = self._find(cycle, Nodes(cycle.state, np.array([cycle.state.nodes.row_of[node_name]])))
        volumes = tuple(
            bound_to(search.offers.volume(int(serials[0])), claim)
            for claim, serials in findings.chosen
            if serials[0] != NO_VOLUME
        )
        provisioned = tuple(made_for(claim, node_name) for claim, rows in findings.to_provision if rows[0])
        for volume in volumes:
            search.volumes.assume(volume)
        for claim in provisioned:
            search.claims.assume(claim)
        cycle.state.note_reservation()
        cycle.write(RESERVED, VolumeWrites(node_name, volumes, provisioned))
        return None

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        writes = self.writes(cycle)
        if writes is None:
            return
        search = cycle.state.companion(VolumeSearch)
        for volume in writes.volumes:
            search.volumes.restore(volume)
        for claim in writes.claims:
            search.claims.restore(claim)
        cycle.state.note_reservation()

    def pre_bind_pre_flight(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return SKIP if self.writes(cycle) is None else None

    async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        """Write what was set aside, and wait until every claim has its volume."""
        writes = self.writes(cycle)
        if writes is None:
            return None
        if writes.node_name != node_name:
            return error(f'no pod volume found for node "{node_name}"')
        try:
            await bind_volumes(self.context.client, pod, writes, cycle.state, within=self.bind_within)
        except ClientError as failure:
            return error(str(failure))
        return None

    def writes(self, cycle: Cycle) -> VolumeWrites | None:
        """The claims and volumes that Reserve assumed and that PreBind writes; None if there are none."""
        return cycle.find(RESERVED)

    def _find(self, cycle: Cycle, nodes: Nodes) -> VolumeFindings:
        return cycle.state.companion(VolumeSearch).find(self._claims(cycle), nodes)

    def _claims(self, cycle: Cycle) -> PodClaims:
        claims: PodClaims = _NO_CLAIMS if self.name in cycle.skipped_filters else cycle.read(_CLAIMS)
        return claims


def after_class(pod: Pod, old: StorageClass | None, new: StorageClass, state: ClusterState) -> Hint:
    """A class is new, or makes volumes in other places than before; nothing else of it can change."""
    return queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def after_csi_node(pod: Pod, old: CSINode | None, new: CSINode, state: ClusterState) -> Hint:
    """Drivers took over from other in-tree plugins than before."""
    return queue_if(old is None or _migrated(old) != _migrated(new))


def after_driver(pod: Pod, old: CSIDriver, new: CSIDriver, state: ClusterState) -> Hint:
    """A driver no longer reports capacity. Claims are not looked at, only volumes that the pod itself names."""
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return queue_if(is_used and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def after_capacity(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity, state: ClusterState) -> Hint:
    """There is a new report, or room for a larger volume than before."""
    return queue_if(old is None or largest_volume(new) > largest_volume(old))


def after_giving_back(pod: Pod, old: Pod, new: None, state: ClusterState) -> Hint:
    """A pod is not bound after all: volumes that were kept for its claims are free. kube-scheduler overlooks it."""
    claims = (state.objects.get(PersistentVolumeClaim, use.name, old.namespace) for use in claims_used(old))
    return queue_if(has_node(old) and any(claim is not None and not is_bound(claim) for claim in claims))


def after_capacity_ceased_to_matter(pod: Pod, old: CSIDriver, new: CSIDriver | None, state: ClusterState) -> Hint:
    """As `after_driver`, for claims, too, and for drivers that are gone. kube-scheduler overlooks these."""
    return queue_if(bool(old.spec.storage_capacity) and (new is None or not new.spec.storage_capacity))


def _migrated(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")

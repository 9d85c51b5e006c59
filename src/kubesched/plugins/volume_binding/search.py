"""The claims of a pod, and what they can get on each row: volumes in reach, or to be made, and why it may not work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.selectors import Requirement
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.api.well_known import SELECTED_NODE
from kubesched.framework.nodes import Nodes
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.shared.csi_migration import TranslationError, migration_of, translated_affinity
from kubesched.plugins.shared.csi_nodes import CSINodeColumns
from kubesched.plugins.shared.volume_claims import claim_not_found, claims_used, class_of, is_bound, why_foreign
from kubesched.plugins.volume_binding.matching import NO_VOLUME, best_offers
from kubesched.plugins.volume_binding.offers import AssumedObjects, ClaimRequest, VolumeOffers
from kubesched.plugins.volume_binding.provisioning import CapacityReports, allowed_rows
from kubesched.plugins.volume_binding.reach import compiled, reach_of, within
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64
from kubesched.state.objects import ObjectStore

UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")

Claims = tuple[PersistentVolumeClaim, ...]


@dataclass(frozen=True)
class PodClaims:
    """Claims that have a volume, and claims whose volume is chosen, or made, together with the node."""

    bound: Claims = ()
    delayed: Claims = ()


def why_not_ready(pod: Pod, objects: ObjectStore) -> str:
    """Why the pod cannot have one of its claims, whatever the node. Empty if it can have them all."""
    for use in claims_used(pod):
        claim = objects.get(PersistentVolumeClaim, use.name, pod.namespace)
        if claim is None and use.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        if claim is None:
            return claim_not_found(use.name)
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{use.name}" is being deleted'
        if use.is_ephemeral and (foreign := why_foreign(pod, claim)):
            return foreign
    return ""


def claims_of(pod: Pod, assumed: AssumedObjects[PersistentVolumeClaim], objects: ObjectStore) -> PodClaims | Status:
    """The claims of a pod that all are there; or, if one should have its volume by now, that the pod must wait."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    must_wait = False
    for use in claims_used(pod):
        claim = assumed.get(use.name, pod.namespace)
        if claim is None:
            return error(f'error getting PVC "{pod.namespace}/{use.name}"')
        if is_bound(claim):
            bound.append(claim)
            continue
        storage_class = objects.get(StorageClass, class_of(claim)) if class_of(claim) else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
        waits = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            must_wait = True
    return UNBOUND_IMMEDIATE if must_wait else PodClaims(tuple(bound), tuple(delayed))


@dataclass
class VolumeFindings:
    """Columns over the rows of a view. A row is good if none of the four kinds of trouble is found there."""

    out_of_reach: Bool
    """A bound volume cannot be reached."""
    unbindable: Bool
    """A claim finds no volume, and none can be made for it."""
    short_of_space: Bool
    """A volume could be made, but there is not enough space."""
    volume_missing: Bool
    """A claim is bound to a volume that does not exist."""
    untranslatable: list[tuple[Bool, str]] = field(default_factory=list)
    """Rows where an in-tree volume should be served by a CSI driver that could not name it; why not."""
    chosen: list[tuple[PersistentVolumeClaim, Int64]] = field(default_factory=list)
    """Per claim the serial numbers of the offers to bind it to."""
    to_provision: list[tuple[PersistentVolumeClaim, Bool]] = field(default_factory=list)
    """Per claim the rows where a volume is to be made."""

    @property
    def troubles(self) -> tuple[Bool, Bool, Bool, Bool]:
        return self.out_of_reach, self.unbindable, self.short_of_space, self.volume_missing


class VolumeSearch:
    """Looks for volumes in a cluster, as they are assumed to be."""

    def __init__(self, state: ClusterState) -> None:
        objects = state.objects
        self.claims = AssumedObjects(PersistentVolumeClaim, objects)
        self.offers = VolumeOffers(objects)
        self.volumes = AssumedObjects(PersistentVolume, objects, on_change=self.offers.touched.add)
        self.reports = CapacityReports(objects)
        self._csi_nodes = state.companion(CSINodeColumns)

    def find(self, claims: PodClaims, nodes: Nodes) -> VolumeFindings:
        findings = VolumeFindings(nodes.none(), nodes.none(), nodes.none(), nodes.none())
        self._check_bound(claims.bound, nodes, findings)
        if claims.delayed:
            self._find_delayed(claims.delayed, nodes, findings)
        return findings

    # -- claims that have a volume ------------------------------------------------------------------------------------

    def _check_bound(self, claims: Claims, nodes: Nodes, findings: VolumeFindings) -> None:
        """On each row, the first claim in trouble tells what the trouble is."""
        fine = ~nodes.none()
        for claim in claims:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                findings.volume_missing |= fine
                return
            reachable = self._reachable(volume, nodes, findings, fine)
            findings.out_of_reach |= fine & ~reachable
            fine &= reachable

    def _reachable(self, volume: PersistentVolume, nodes: Nodes, findings: VolumeFindings, rows: Bool) -> Bool:
        """Per row whether a volume can be used; where a CSI driver serves in-tree volumes, by that driver's labels."""
        reachable = within(nodes, reach_of(volume))
        migration = migration_of(volume.spec)
        if migration is None:
            return reachable
        self._csi_nodes.refresh()
        column = self._csi_nodes.migrated(migration.plugin)
        if column is None:
            return reachable
        migrated = nodes.take(column)
        try:
            translated = within(nodes, compiled(translated_affinity(volume, migration)))
        except TranslationError as error:
            findings.untranslatable.append((rows & migrated, f"could not translate pv: {error}"))
            return reachable
        return np.where(migrated, translated, reachable)

    # -- claims that wait for a node ----------------------------------------------------------------------------------

    def _find_delayed(self, claims: Claims, nodes: Nodes, findings: VolumeFindings) -> None:
        possible = ~nodes.none()
        started = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
        for claim in started:
            selected = frozenset((claim.metadata.annotations[SELECTED_NODE],))
            possible &= nodes.named(Requirement("metadata.name", "In", selected))
        findings.unbindable |= ~possible
        findings.to_provision = [(claim, possible) for claim in started]
        self._match([claim for claim in claims if SELECTED_NODE not in claim.metadata.annotations], nodes, findings)
        self._check_provisions(nodes, findings, possible)

    def _match(self, claims: list[PersistentVolumeClaim], nodes: Nodes, findings: VolumeFindings) -> None:
        """Give each claim the smallest volume that fits, small claims first; what finds none is to be provisioned."""
        if not claims:
            return
        self.offers.refresh(self.volumes)
        for request in sorted((ClaimRequest(claim) for claim in claims), key=lambda request: request.size):
            serials = best_offers(request, self.offers, nodes, [taken for _, taken in findings.chosen])
            findings.chosen.append((request.claim, serials))
            findings.to_provision.append((request.claim, serials == NO_VOLUME))

    def _check_provisions(self, nodes: Nodes, findings: VolumeFindings, possible: Bool) -> None:
        for claim, rows in findings.to_provision:
            to_provision = rows & possible
            if not to_provision.any():
                continue
            refused = to_provision & ~allowed_rows(claim, nodes)
            short = to_provision & ~refused & ~self.reports.rows_with_space(claim, nodes)
            findings.unbindable |= refused
            findings.short_of_space |= short
            possible = possible & ~refused & ~short

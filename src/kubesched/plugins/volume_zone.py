"""VolumeZone: a volume labelled with a zone or region can be used only there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from kubesched.api.pod import Pod
from kubesched.api.selectors import Requirement
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unresolvable
from kubesched.plugins.shared.csi_migration import ZONES_DELIMITER
from kubesched.plugins.shared.hinting import CLAIMS, after_named_claim, queue_if, waits_for
from kubesched.plugins.shared.volume_claims import claim_not_found, class_of
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32
from kubesched.state.facts import StateKey, claim_names
from kubesched.state.objects import ObjectStore

ELSEWHERE = unresolvable("node(s) had no available volume zone")

_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class VolumeTopology(NamedTuple):
    """Where a volume is: a label and the values it may have on a node."""

    label: str
    values: frozenset[str]

    def holds(self, nodes: Nodes) -> Bool:
        """Per row whether the node is in this topology. The newer label stands in for an old one, not the reverse."""
        in_topology = nodes.meets(Requirement(self.label, "In", self.values))
        newer = _SUCCESSOR.get(self.label)
        if newer is None:
            return in_topology
        unlabelled = nodes.meets(Requirement(self.label, "DoesNotExist"))
        return in_topology | (unlabelled & nodes.meets(Requirement(newer, "In", self.values)))


VolumeTopologies = tuple[VolumeTopology, ...]


_TOPOLOGIES = StateKey[VolumeTopologies]("VolumeZone")


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Rejects nodes in zones from which a volume of the pod cannot be reached."""

    name = "VolumeZone"
    pre_filter_reads = Reads(PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.CLAIMS)
    filter_reads = Reads(PodFields.CLAIM_NAMES | PodFields.NAMESPACE, Scope.OBJECTS)

    def events_to_register(self) -> tuple[Interest, ...]:
        return (
            waits_for(Kind.STORAGE_CLASS, Action.ADD, _after_class),
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            waits_for(Kind.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, after_named_claim, CLAIMS),
            waits_for(Kind.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _after_volume),
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if not cycle.facts.claims:
            return SKIP
        topologies = _topologies_of_claims(cycle)
        if isinstance(topologies, Status):
            return topologies
        if not topologies:
            return SKIP
        cycle.write(_TOPOLOGIES, topologies)
        return None

    def sign(self, cycle: Cycle) -> Hashable:
        return self._topologies(cycle)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        topologies = self._topologies(cycle)
        if isinstance(topologies, Status):
            return self.reject(~nodes.none(), topologies)
        reachable = ~nodes.none()
        for topology in topologies:
            reachable &= topology.holds(nodes)
        # A cluster without zones does not label its nodes: there every volume is near enough.
        is_labelled = nodes.none()
        for label in _LABELS:
            is_labelled |= nodes.meets(Requirement(label, "Exists"))
        return self.reject(is_labelled & ~reachable, ELSEWHERE)

    def _topologies(self, cycle: Cycle) -> VolumeTopologies | Status:
        """As pre_filter left them; worked out here in a profile without it."""
        topologies = cycle.find(_TOPOLOGIES)
        return _topologies_of_claims(cycle) if topologies is None else topologies


def _topologies_of_claims(cycle: Cycle) -> VolumeTopologies | Status:
    """The topologies of the volumes that the pod's claims are bound to, or why the pod must wait."""
    objects = cycle.state.objects
    topologies: list[VolumeTopology] = []
    for name in claim_names(cycle.pod):
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = objects.get(PersistentVolumeClaim, name, cycle.pod.namespace)
        if claim is None:
            return unresolvable(claim_not_found(name))
        if not claim.spec.volume_name:
            fault = _unbound_fault(claim, objects)
            if fault:
                return unresolvable(fault)
            continue
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        topologies += _topologies_of(volume)
    return tuple(topologies)


def _unbound_fault(claim: PersistentVolumeClaim, objects: ObjectStore) -> str:
    """Why a claim may not be without a volume by now; nothing if it waits for its first consumer."""
    class_name = class_of(claim)
    if not class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = objects.get(StorageClass, class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{class_name}"'
    return "" if storage_class.volume_binding_mode == "WaitForFirstConsumer" else "PersistentVolume had no name"


def _topologies_of(volume: PersistentVolume) -> list[VolumeTopology]:
    labels = volume.metadata.labels
    listed = {label: labels[label].split(ZONES_DELIMITER) for label in _LABELS if label in labels}
    topologies = (VolumeTopology(label, frozenset(map(str.strip, values))) for label, values in listed.items())
    # A list with an empty entry cannot be trusted, and says nothing.
    return [topology for topology in topologies if "" not in topology.values]


def _after_class(pod: Pod, old: None, new: StorageClass, state: ClusterState) -> Hint:
    """Claims of the class may do without a volume for now."""
    return queue_if(new.volume_binding_mode == "WaitForFirstConsumer")


def _after_volume(pod: Pod, old: PersistentVolume | None, new: PersistentVolume, state: ClusterState) -> Hint:
    """A volume is new, or in another topology than before."""
    return queue_if(old is None or _topologies_of(old) != _topologies_of(new))

"""Disks of the old in-tree plugins, seen as volumes of the CSI drivers that replaced those plugins."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.pod import DiskSource, Volume
from kubesched.api.storage import InTreeVolumeSource, PersistentVolume, PersistentVolumeSpec
from kubesched.api.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE

ZONES_DELIMITER = "__"
"""Between the zones of a volume that is in more than one."""

_ANY = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*")


class Migration(NamedTuple):
    """An in-tree plugin and its successor. `zone_key` is the node label by which the driver tells zones apart."""

    plugin: str
    driver: str
    zone_key: str = ""


GCE_PD = Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AWS_EBS = Migration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
CINDER = Migration("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone")
AZURE_DISK = Migration("kubernetes.io/azure-disk", "disk.csi.azure.com")
PORTWORX = Migration("kubernetes.io/portworx-volume", "pxd.portworx.com")

MIGRATIONS = {m.plugin: m for m in (GCE_PD, AWS_EBS, CINDER, AZURE_DISK, PORTWORX)}
NOT_COUNTED = frozenset(("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"))
"""Plugins with a successor that kube-scheduler does not take into account."""


class TranslationError(ValueError):
    """A disk that its driver could not name."""


def migration_of(disk: PersistentVolumeSpec | Volume) -> Migration | None:
    """The migration that a volume, or what a pod names without a claim, is subject to, if it is an in-tree disk."""
    if disk.gce_persistent_disk is not None:
        return GCE_PD
    if disk.aws_elastic_block_store is not None:
        return AWS_EBS
    if disk.cinder is not None:
        return CINDER
    if disk.azure_disk is not None:
        return AZURE_DISK
    return PORTWORX if disk.portworx_volume is not None else None


def handle_of(pv: PersistentVolume) -> str:
    """What the driver calls an in-tree volume."""
    disk = pv.spec.gce_persistent_disk
    return _handle(pv.spec) if disk is None else _gce_handle(pv, disk.pd_name)


def inline_handle_of(volume: Volume) -> str:
    """What the driver calls a disk that a pod names without a claim."""
    disk = volume.gce_persistent_disk
    return _handle(volume) if disk is None else f"projects/{_ANY}/zones/{_ANY}/disks/{disk.pd_name}"


def _handle(disk: PersistentVolumeSpec | Volume) -> str:
    if disk.aws_elastic_block_store is not None:
        return _ebs_handle(disk.aws_elastic_block_store.volume_id)
    if disk.cinder is not None:
        return disk.cinder.volume_id
    if disk.azure_disk is not None:
        return _azure_handle(disk.azure_disk)
    return disk.portworx_volume.volume_id if disk.portworx_volume is not None else ""


def translated_affinity(pv: PersistentVolume, migration: Migration) -> NodeSelector | None:
    """The node affinity of an in-tree volume, in the labels that its driver puts on nodes."""
    handle_of(pv)  # a disk that cannot be named cannot be translated at all
    required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
    if not migration.zone_key:
        return required
    terms = required.node_selector_terms if required else ()
    keys = {e.key for term in terms for e in term.match_expressions}
    with_values = {e.key for term in terms for e in term.match_expressions if e.values}
    is_beta = _uses_beta_labels(keys, pv.metadata.labels)
    zone_label = BETA_ZONE if is_beta else ZONE
    if zone_label in with_values:
        terms = _with_key_replaced(terms, zone_label, migration.zone_key)
    elif zone_label in pv.metadata.labels:
        zones = {zone.strip() for zone in pv.metadata.labels[zone_label].split(ZONES_DELIMITER)} - {""}
        if zones:
            terms = _with_requirement(terms, migration.zone_key, tuple(sorted(zones)))
    if is_beta and BETA_REGION in with_values:
        terms = _with_key_replaced(terms, BETA_REGION, REGION)
    return NodeSelector(node_selector_terms=terms) if required or terms else None


def _uses_beta_labels(*sources: Container[str]) -> bool:
    """Whether the old labels are in use, by the first source that has either."""
    for keys in sources:
        if ZONE in keys:
            return False
        if BETA_ZONE in keys:
            return True
    return False


def _with_key_replaced(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(e, key=new) if e.key == old else e for e in term.match_expressions
            ),
        )
        for term in terms
    )


def _with_requirement(
    terms: tuple[NodeSelectorTerm, ...], key: str, values: tuple[str, ...]
) -> tuple[NodeSelectorTerm, ...]:
    more = NodeSelectorRequirement(key=key, operator="In", values=values)
    return tuple(
        msgspec.structs.replace(term, match_expressions=(*term.match_expressions, more))
        for term in terms or (NodeSelectorTerm(),)
    )


def _gce_handle(pv: PersistentVolume, disk: str) -> str:
    labels = pv.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONES_DELIMITER)
    if len(zones) == 1:
        return f"projects/{_ANY}/zones/{zones[0] or _ANY}/disks/{disk}"
    malformed = next((zone for zone in zones if zone.count("-") != 2), None)
    if malformed is not None:
        raise TranslationError(
            "failed to get region from zones: zone in unexpected format, "
            f"expected: {{locale}}-{{region}}-{{zone}}, got: {malformed}"
        )
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return f"projects/{_ANY}/regions/{regions.pop()}/disks/{disk}"


def _azure_handle(disk: DiskSource | InTreeVolumeSource) -> str:
    """The disk by its URI. Blobs have no successor, and a blob is what the API server makes of a disk of no kind."""
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _ebs_handle(volume_id: str) -> str:
    """The bare id: in-tree ones may be written aws://zone/id."""
    if not volume_id.startswith("aws://"):
        return volume_id
    bare = urlsplit(volume_id).path.strip("/")
    if not _EBS_ID.fullmatch(bare):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return bare

"""The volumes of a pod that CSI drivers attach to its node."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from kubesched.api.pod import Pod, Volume
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.shared.csi_migration import (
    MIGRATIONS,
    NOT_COUNTED,
    TranslationError,
    handle_of,
    inline_handle_of,
    migration_of,
)
from kubesched.plugins.shared.volume_claims import (
    ClaimUse,
    claim_behind,
    claim_not_found,
    claims_used,
    class_of,
    why_foreign,
)
from kubesched.state.facts import PodFacts
from kubesched.state.objects import ObjectStore


class AttachedVolume(NamedTuple):
    """A volume by its driver and the driver's name for it; one not made yet goes by its claim."""

    driver: str
    handle: str
    unbound_claim: str = ""


class VolumeFaultError(Exception):
    """A volume of a pod that cannot be identified. One named in the old way matters only to nodes with CSI drivers."""

    def __init__(self, status: Status, *, only_with_csi: bool = False) -> None:
        super().__init__(status.message)
        self.status = status
        self.only_with_csi = only_with_csi


def attachable_count(pod: Pod, facts: PodFacts) -> int:
    """How many volumes of the pod may need attaching; some of them may turn out to be one, or to need nothing."""
    return facts.without_node_names.derived(_attachable_count, pod) if pod.spec.volumes else 0


def _attachable_count(pod: Pod) -> int:
    return len(claims_used(pod)) + sum(migration_of(volume) is not None for volume in pod.spec.volumes)


def volumes_wanted(pod: Pod, objects: ObjectStore, *, migrating: bool = True) -> set[AttachedVolume]:
    """The volumes a pending pod needs attached. All its claims must exist and be its own.

    Without `migrating`, in-tree disks are left out: they count for no driver on nodes that have no CSI driver.
    """
    volumes: set[AttachedVolume | None] = set()
    for volume in pod.spec.volumes:  # in their order, since the first fault is reported
        use = claim_behind(pod, volume)
        if use is not None:
            volumes.add(_volume_used(pod, use, objects, migrating))
        elif migrating:
            volumes.add(_inline_volume(volume))
    return {volume for volume in volumes if volume is not None}


def volumes_in_use(pod: Pod, objects: ObjectStore) -> set[AttachedVolume]:
    """The volumes attached for a placed pod, as far as they can be identified."""
    volumes: set[AttachedVolume | None] = set()
    for use in claims_used(pod):
        with suppress(VolumeFaultError):
            volumes.add(_volume_used(pod, use, objects))
    for volume in pod.spec.volumes:
        with suppress(VolumeFaultError):
            volumes.add(_inline_volume(volume))
    return {volume for volume in volumes if volume is not None}


def _inline_volume(volume: Volume) -> AttachedVolume | None:
    migration = migration_of(volume)
    if migration is None:
        return None
    try:
        return AttachedVolume(migration.driver, inline_handle_of(volume))
    except TranslationError as failure:
        status = error(f"converting volume({volume.name}) from inline to csi: {failure}")
        raise VolumeFaultError(status, only_with_csi=True) from failure


def _volume_used(pod: Pod, use: ClaimUse, objects: ObjectStore, migrating: bool = True) -> AttachedVolume | None:
    if not use.name:
        raise VolumeFaultError(error("PersistentVolumeClaim had no name"))
    claim = objects.get(PersistentVolumeClaim, use.name, pod.namespace)
    if claim is None:
        missing = f"looking up PVC {pod.namespace}/{use.name}: {claim_not_found(use.name)}"
        raise VolumeFaultError(unresolvable(missing))
    if use.is_ephemeral and (fault := why_foreign(pod, claim)):
        raise VolumeFaultError(error(fault))
    return _volume_behind(claim, objects, migrating)


def _volume_behind(claim: PersistentVolumeClaim, objects: ObjectStore, migrating: bool) -> AttachedVolume | None:
    """The volume of a claim, or the one that will be made for it; None if no driver attaches it."""
    volume = objects.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _volume_to_come(claim, objects, migrating)
    if volume.spec.csi is not None:
        driver, handle = volume.spec.csi.driver, volume.spec.csi.volume_handle
    else:
        migration = migration_of(volume.spec)
        if migration is None or not migrating:
            return None
        try:
            driver, handle = migration.driver, handle_of(volume)
        except TranslationError:
            return None
    return AttachedVolume(driver, handle) if driver and handle else None


def _volume_to_come(claim: PersistentVolumeClaim, objects: ObjectStore, migrating: bool) -> AttachedVolume | None:
    class_name = class_of(claim)
    storage_class = objects.get(StorageClass, class_name) if class_name else None
    if storage_class is None or storage_class.provisioner in NOT_COUNTED:
        return None
    migration = MIGRATIONS.get(storage_class.provisioner)
    if migration is not None and not migrating:
        return None
    driver = migration.driver if migration else storage_class.provisioner
    return AttachedVolume(driver, "", unbound_claim=claim.key) if driver else None

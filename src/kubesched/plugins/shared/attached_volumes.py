"""Which volumes are attached to each node, for its pods or without any, and how many of each driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

import numpy as np

from kubesched.api.pod import Pod, Volume
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from kubesched.plugins.shared.volume_attachments import AttachedVolume, attachable_count, volumes_in_use
from kubesched.plugins.shared.volume_claims import claims_used
from kubesched.state.changes import ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int64, grown
from kubesched.state.pods import PlacedPod

_NONE: frozenset[AttachedVolume] = frozenset()

_PodVolumes = tuple[tuple[Volume, ...], Set[AttachedVolume]]
"""The volumes of a pod as it names them, and those that are meant by that."""


class AttachedVolumes:
    """The volumes on all rows. `refresh` works out anew the rows where pods, claims, volumes or attachments changed."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._rows_changed = ChangeReader(state.nodes.total_changes)
        self._claims_changed = ChangeReader(state.objects.changes(PersistentVolumeClaim))
        self._volumes_changed = ChangeReader(state.objects.changes(PersistentVolume))
        self._classes_version = 0
        self._attachments_version = 0
        self._attachments: dict[str, list[VolumeAttachment]] = {}
        """By the name of the node."""
        self._of_pods: dict[int, dict[str, _PodVolumes]] = {}
        """By row and identity of the pod."""
        self._names: dict[int, str] = {}
        """By row, the node that was there when it was last looked at."""
        self._in_use: dict[int, Set[AttachedVolume]] = {}
        self._users: dict[AttachedVolume, set[int]] = {}
        """The rows where a pod uses a volume."""
        self._depending: dict[str, set[int]] = {}
        """By the key of a claim, which has a slash, or of a volume, the rows where it may matter."""
        self._counts: dict[str, Int64] = {}

    def count(self, driver: str) -> Int64:
        """How many volumes of a driver each row has, each once: those in use by pods, and those attached without."""
        length, counts = len(self._state.nodes.live), self._counts.get(driver, np.zeros(0, dtype=np.int64))
        if len(counts) != length:
            counts = self._counts[driver] = grown(counts, length)
        return counts

    def in_use_already(self, volumes: Iterable[AttachedVolume]) -> Int64:
        """How many of the volumes pods of each row use."""
        counts: Int64 = np.zeros(len(self._state.nodes.live), dtype=np.int64)
        for volume in volumes:
            counts[list(self._users.get(volume, ()))] += 1
        return counts

    def of_pod(self, placed: PlacedPod) -> Set[AttachedVolume]:
        """The volumes that a pod uses, which need not be where it is."""
        if not attachable_count(placed.pod, placed.facts):
            return _NONE
        volumes = self._of_pods.get(placed.row, {}).get(placed.pod.identity)
        if volumes is not None and volumes[0] == placed.pod.spec.volumes:
            return volumes[1]
        return volumes_in_use(placed.pod, self._state.objects)

    def without_pods(self, row: int) -> set[AttachedVolume]:
        """What the cluster says is attached to a node, whatever pod uses it."""
        attached: set[AttachedVolume] = set()
        for attachment in self._attachments.get(self._state.nodes.names[row], ()):
            name = attachment.spec.source.persistent_volume_name
            volume = self._state.objects.get(PersistentVolume, name) if name else None
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                attached.add(AttachedVolume(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return attached

    def refresh(self) -> None:
        """Catch up with the cluster."""
        rows = self._rows_with_other_objects()
        if rows is None:
            self._of_pods.clear()
            self._depending.clear()
        else:
            for row in rows:
                self._of_pods.pop(row, None)
        changed = self._rows_changed.read()
        if rows is None or changed is None:
            rows = set(range(self._state.nodes.size))
        else:
            rows.update(row for row in changed if self._has_other_pods(row))
        for row in rows | self._rows_with_other_attachments():
            self._repair(row)

    def _has_other_pods(self, row: int) -> bool:
        """Whether other pods with volumes are there than when the row was last looked at, or it is another node's."""
        if self._names.get(row) != self._state.nodes.names[row]:
            return True
        with_volumes = [p.pod for p in self._state.pods.pods_on(row) if attachable_count(p.pod, p.facts)]
        before = {identity: volumes for identity, (volumes, _) in self._of_pods.get(row, {}).items()}
        return before != {pod.identity: pod.spec.volumes for pod in with_volumes}

    def _rows_with_other_objects(self) -> set[int] | None:
        """Where claims or volumes changed that pods may mean; None if it may be anywhere."""
        version = self._state.objects.version(StorageClass)
        claims, volumes = self._claims_changed.read(), self._volumes_changed.read()
        if version != self._classes_version or claims is None or volumes is None:
            self._classes_version = version
            return None
        return {row for key in (*claims, *volumes) for row in self._depending.pop(key, ())}

    def _rows_with_other_attachments(self) -> set[int]:
        version = self._state.objects.version(VolumeAttachment)
        if version == self._attachments_version:
            return set()
        self._attachments_version, before = version, self._attachments
        self._attachments = {}
        for attachment in self._state.objects.all(VolumeAttachment):
            self._attachments.setdefault(attachment.spec.node_name, []).append(attachment)
        names = [name for name in {*before, *self._attachments} if before.get(name) != self._attachments.get(name)]
        return {row for name in names if (row := self._state.nodes.row_of.get(name)) is not None}

    def _repair(self, row: int) -> None:
        self._names[row] = self._state.nodes.names[row]
        for volume in self._in_use.pop(row, ()):
            self._users[volume].discard(row)
            if not self._users[volume]:
                del self._users[volume]
        in_use = self._find_in_use(row)
        if in_use:
            self._in_use[row] = in_use
        for volume in in_use:
            self._users.setdefault(volume, set()).add(row)
        for attachment in self._attachments.get(self._state.nodes.names[row], ()):
            self._depends(row, attachment.spec.source.persistent_volume_name or "")
        for counts in self._counts.values():
            counts[row : row + 1] = 0
        for driver, count in Counter(volume.driver for volume in in_use | self.without_pods(row)).items():
            self.count(driver)[row] = count

    def _find_in_use(self, row: int) -> Set[AttachedVolume]:
        before = self._of_pods.pop(row, {})
        by_pod: dict[str, _PodVolumes] = {}
        for placed in self._state.pods.pods_on(row):
            if attachable_count(placed.pod, placed.facts):
                pod, identity = placed.pod, placed.pod.identity
                volumes = before.get(identity)
                if volumes is None or volumes[0] != pod.spec.volumes:
                    volumes = (pod.spec.volumes, volumes_in_use(pod, self._state.objects))
                    self._note_dependencies(pod, row)
                by_pod[identity] = volumes
        if by_pod:
            self._of_pods[row] = by_pod
        return _NONE.union(*(attached for _, attached in by_pod.values()))

    def _note_dependencies(self, pod: Pod, row: int) -> None:
        for use in claims_used(pod):
            self._depends(row, f"{pod.namespace}/{use.name}")
            claim = self._state.objects.get(PersistentVolumeClaim, use.name, pod.namespace)
            if claim is not None:
                self._depends(row, claim.spec.volume_name)

    def _depends(self, row: int, key: str) -> None:
        if key:
            self._depending.setdefault(key, set()).add(row)

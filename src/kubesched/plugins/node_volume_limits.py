"""NodeVolumeLimits: a node can attach only so many volumes of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.status import SKIP_ALIKE, Status, unschedulable
from kubesched.plugins.volume_attachments import (
    AttachedVolume,
    AttachmentColumns,
    VolumeFaultError,
    attachable_count,
    volumes_in_use,
    volumes_wanted,
)
from kubesched.plugins.volume_csi_nodes import NO_LIMIT, CSINodeColumns
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32

TOO_MANY = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where the pod's volumes would be more than a driver can attach."""

    name = "NodeVolumeLimits"
    _state: ClusterState | None = None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.pod.spec.volumes and attachable_count(cycle.pod, cycle.facts) else SKIP_ALIKE

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        self._follow(cycle.state)
        try:
            wanted = volumes_wanted(cycle.pod, cycle.state.objects)
        except VolumeFaultError as fault:
            where = nodes.take(self._csi_nodes.present) if fault.only_with_csi else ~nodes.none()
            return self.reject(where, fault.status)
        return self.reject(self._over_limit(wanted, nodes), TOO_MANY)

    def _follow(self, state: ClusterState) -> None:
        if state is not self._state:
            self._state = state
            self._csi_nodes = CSINodeColumns(state)
            self._attachments = AttachmentColumns(state)
        self._csi_nodes.refresh()

    def _over_limit(self, wanted: Set[AttachedVolume], nodes: Nodes) -> Bool:
        """Exact where a generous count says that a limit may be hit; elsewhere there is room."""
        over = nodes.none()
        per_driver = Counter(volume.driver for volume in wanted)
        limits = {driver: limit for driver in per_driver if (limit := self._csi_nodes.limit(driver)) is not None}
        if not limits:
            return over
        self._attachments.refresh()
        # In a view of some rows there may be other pods than the table says: then the count is no bound.
        bound = self._attachments.upper_bound() if nodes.rows is None else None
        doubtful = nodes.none()
        for driver, limit in limits.items():
            of_driver = nodes.take(limit)
            if bound is None:
                doubtful |= of_driver != NO_LIMIT
            else:
                doubtful |= nodes.take(bound) + per_driver[driver] > of_driver
        for i in np.flatnonzero(doubtful).tolist():
            over[i] = self._is_over(wanted, nodes, i)
        return over

    def _is_over(self, wanted: Set[AttachedVolume], nodes: Nodes, i: int) -> bool:
        row, state = nodes.row(i), nodes.state
        in_use: set[AttachedVolume] = set()
        for placed in nodes.pods(i):
            if attachable_count(placed.pod, placed.facts):
                in_use |= volumes_in_use(placed.pod, state.objects)
        attached = Counter(volume.driver for volume in in_use | self._attachments.attached(state.nodes.names[row]))
        # A volume that is attached but in use by no pod counts, even against a pod that wants this very volume.
        new = Counter(volume.driver for volume in wanted - in_use)
        return any(
            attached[driver] + count > limit[row]
            for driver, count in new.items()
            if (limit := self._csi_nodes.limit(driver)) is not None
        )

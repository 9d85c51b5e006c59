"""NodeVolumeLimits: a node can attach only so many volumes of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import numpy as np

from kubesched.api.storage import CSIDriver
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kubesched.plugins.volume_attachments import (
    AttachedVolume,
    AttachmentColumns,
    ClaimFaultError,
    ClaimMissingError,
    attachable_count,
    volumes_used,
    volumes_wanted,
)
from kubesched.plugins.volume_csi_nodes import CSINodeColumns
from kubesched.plugins.volume_migration import MIGRATIONS, TranslationError
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32

TOO_MANY = unschedulable("node(s) exceed max volume count")

_SUCCESSORS = frozenset(migration.driver for migration in MIGRATIONS.values())


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where the pod's volumes would be more than a driver can attach."""

    name = "NodeVolumeLimits"
    _state: ClusterState | None = None

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.pod.spec.volumes and attachable_count(cycle.pod, cycle.facts) else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        self._refresh(cycle.state)
        try:
            wanted = volumes_wanted(cycle.pod, cycle.state.objects)
        except ClaimMissingError as missing:
            return self.reject(~nodes.none(), unresolvable(str(missing)))
        except ClaimFaultError as fault:
            return self.reject(~nodes.none(), error(str(fault)))
        except TranslationError as problem:
            return self.reject(nodes.take(self._csi_nodes.present), error(str(problem)))
        verdicts = self.reject(self._over_limit(wanted, nodes), TOO_MANY)
        if self.context.enabled("VolumeLimitScaling", False):
            self._reject_where_missing(wanted, cycle, nodes, verdicts)
        return verdicts

    def _refresh(self, state: ClusterState) -> None:
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
        # Rows in a narrower view may carry other pods than the table says, so there the count is no bound.
        bound = self._attachments.upper_bound() if nodes.rows is None else None
        doubtful = nodes.none()
        for driver, limit in limits.items():
            room = limit if bound is None else limit - bound
            doubtful |= nodes.take(room) < (np.iinfo(np.int64).max if bound is None else per_driver[driver])
        for i in np.flatnonzero(doubtful).tolist():
            over[i] = self._is_over(wanted, nodes, i)
        return over

    def _is_over(self, wanted: Set[AttachedVolume], nodes: Nodes, i: int) -> bool:
        row, state = nodes.row(i), nodes.state
        used: set[AttachedVolume] = set()
        for placed in nodes.pods(i):
            if attachable_count(placed.pod, placed.facts):
                used |= volumes_used(placed.pod, state.objects)
        attached = Counter(volume.driver for volume in used | self._attachments.attached(state.nodes.names[row]))
        # Attached but in use by nobody counts against the new pod even if it wants that very volume.
        new = Counter(volume.driver for volume in wanted - used)
        return any(
            attached[driver] + count > limit[row]
            for driver, count in new.items()
            if (limit := self._csi_nodes.limit(driver)) is not None
        )

    def _reject_where_missing(
        self, wanted: Set[AttachedVolume], cycle: Cycle, nodes: Nodes, verdicts: Int32
    ) -> None:
        """Keep the pod off nodes without a driver that asks for it; this goes before any limit."""
        for driver in sorted({volume.driver for volume in wanted}):
            described = cycle.state.objects.get(CSIDriver, driver)
            if described is None or not described.spec.prevent_pod_scheduling_if_missing:
                continue
            status = self.verdicts.id_of(unschedulable(f"{driver} CSI driver is not installed on the node"))
            for i in range(len(nodes)):
                row = nodes.row(i)
                is_migrated = driver in _SUCCESSORS and not self._csi_nodes.present[row]
                if not is_migrated and driver not in self._csi_nodes.drivers(row):
                    verdicts[i] = status

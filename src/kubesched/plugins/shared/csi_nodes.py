"""What CSI drivers say about nodes, as columns: how many volumes a node may attach, and what has moved to CSI there."""

from __future__ import annotations

import numpy as np

from kubesched.api.storage import CSINode
from kubesched.api.well_known import MIGRATED_PLUGINS
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64, grown

NO_LIMIT = np.iinfo(np.int64).max


class CSINodeColumns:
    """The CSINode objects of a cluster, a row per node. `refresh` brings the columns up to date."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._seen: list[CSINode | None] = []
        self._version = -1
        self._position = 0
        self._length = 0
        self.present: Bool = np.zeros(0, dtype=np.bool_)
        """Whether the node has a CSINode at all."""
        self._limits: dict[str, Int64] = {}
        self._migrated: dict[str, Bool] = {}
        self._installed: dict[str, Bool] = {}

    def refresh(self) -> None:
        table, objects = self._state.nodes, self._state.objects
        version, position = objects.version(CSINode), table.object_changes.position
        if (version, position) == (self._version, self._position):
            return
        self._grow(len(table.live))
        rows = table.object_changes.since(self._position) if version == self._version else None
        for row in range(table.size) if rows is None else rows:
            csi_node = objects.get(CSINode, table.names[row]) if table.live[row] else None
            if csi_node is not self._seen[row]:
                self._write(row, csi_node)
        self._version, self._position = version, position

    def limit(self, driver: str) -> Int64 | None:
        """How many volumes of a driver each node may attach; None if no node says."""
        return self._limits.get(driver)

    @property
    def has_limits(self) -> bool:
        """Whether any node says how many volumes of any driver it may attach."""
        return bool(self._limits)

    def lacking(self, driver: str) -> Bool:
        """The nodes on which a driver is not installed."""
        installed = self._installed.get(driver)
        return np.ones(self._length, dtype=np.bool_) if installed is None else ~installed

    def migrated(self, plugin: str) -> Bool | None:
        """The nodes on which a CSI driver has taken over from an in-tree plugin; None if there are none."""
        return self._migrated.get(plugin)

    def _write(self, row: int, csi_node: CSINode | None) -> None:
        self._seen[row] = csi_node
        self.present[row] = csi_node is not None
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        for migrated in self._migrated.values():
            migrated[row] = False
        for installed in self._installed.values():
            installed[row] = False
        if csi_node is None:
            return
        for driver in csi_node.spec.drivers:
            if driver.name not in self._installed:
                self._installed[driver.name] = np.zeros(self._length, dtype=np.bool_)
            self._installed[driver.name][row] = True
            if driver.allocatable is not None and driver.allocatable.count is not None:
                if driver.name not in self._limits:
                    self._limits[driver.name] = np.full(self._length, NO_LIMIT, dtype=np.int64)
                self._limits[driver.name][row] = driver.allocatable.count
        for plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(","):
            if plugin not in self._migrated:
                self._migrated[plugin] = np.zeros(self._length, dtype=np.bool_)
            self._migrated[plugin][row] = True

    def _grow(self, length: int) -> None:
        if length == self._length:
            return
        self._length = length
        self._seen += [None] * (length - len(self._seen))
        self.present = grown(self.present, length)
        self._limits = {driver: grown(limits, length, NO_LIMIT) for driver, limits in self._limits.items()}
        self._migrated = {plugin: grown(migrated, length) for plugin, migrated in self._migrated.items()}
        self._installed = {driver: grown(installed, length) for driver, installed in self._installed.items()}

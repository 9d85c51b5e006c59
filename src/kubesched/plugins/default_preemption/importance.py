"""The pods of every row, most important first, as a matrix; kept up to date from the change log."""

from __future__ import annotations

import numpy as np

from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, grown


class ByImportance:
    """Line r, column c: the index in the pod table of the r-th most important pod on row c, or -1."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._slots: Int32 = np.full((4, len(state.nodes.live)), -1, dtype=np.int32)
        self._position: int | None = None

    def slots(self) -> Int32:
        """The matrix as of now."""
        log, size = self.state.nodes.changes, self.state.nodes.size
        if size > self._slots.shape[1]:
            self._slots = grown(self._slots, len(self.state.nodes.live), -1)
        rows = None if self._position is None else log.since(self._position)
        for row in range(size) if rows is None else rows:
            self._write(row)
        self._position = log.position
        return self._slots[:, :size]

    def _write(self, row: int) -> None:
        pods = sorted(self.state.pods.pods_on(row), key=lambda pod: pod.importance)
        if len(pods) > len(self._slots):
            more = np.full((2 * len(pods), self._slots.shape[1]), -1, dtype=np.int32)
            more[: len(self._slots)] = self._slots
            self._slots = more
        self._slots[: len(pods), row] = [pod.index for pod in pods]
        self._slots[len(pods) :, row] = -1

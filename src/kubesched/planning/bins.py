"""Single nodes that are filled kind by kind: best fit for what a plan has left over, and for loads to start from."""

from __future__ import annotations

import numpy as np

from kubesched.state.columns import Bool, Float, Int64, Rows


class Bins:
    """Nodes with the room that is left on each, and how many pods of each kind they have."""

    def __init__(self, requests: Int64, most_per_node: Int64, fits: Bool) -> None:
        """`fits` by kind and class; `most_per_node` by kind, leaving room aside."""
        self._requests = requests
        self._most = most_per_node
        self._fits = fits
        self.class_of: Rows = np.zeros(0, dtype=np.intp)
        self.left: Int64 = np.zeros((0, requests.shape[1]), dtype=np.int64)
        self.counts: Int64 = np.zeros((0, len(requests)), dtype=np.int64)

    def add(self, class_of: Rows, room: Int64, counts: Int64) -> None:
        """Nodes with their class, their whole room and what is on them already."""
        self.class_of = np.concatenate([self.class_of, class_of])
        self.left = np.concatenate([self.left, room - counts @ self._requests])
        self.counts = np.concatenate([self.counts, counts])

    def fill(self, kind: int, count: int, weights: Float, among: Bool | None = None) -> int:
        """Put so many pods of a kind where they leave least, by the weights of resources; how many found no room."""
        if count <= 0 or not len(self.left):
            return count
        request = self._requests[kind]
        asked = request > 0
        room = (self.left[:, asked] // request[asked]).min(axis=1, initial=count)
        room = np.minimum(room, self._most[kind] - self.counts[:, kind])
        room[~self._fits[kind, self.class_of]] = 0
        if among is not None:
            room[~among] = 0
        open_bins = np.flatnonzero(room > 0)
        if not len(open_bins):
            return count
        tightest = open_bins[np.argsort(self.left[open_bins] @ weights, kind="stable")]
        taken = np.minimum(room[tightest], np.maximum(count - (np.cumsum(room[tightest]) - room[tightest]), 0))
        self.left[tightest] -= taken[:, None] * request
        self.counts[tightest, kind] += taken
        return count - int(taken.sum())

"""Scores nodes by how well their storage fits what the pod asks for. Behind the gate StorageCapacityScoring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.api.quantity import QuantityText, parse_quantity
from kubesched.config.args import UtilizationShapePoint
from kubesched.config.defaults import LESS_USED_IS_BETTER
from kubesched.framework.nodes import Nodes
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.plugins.shared.arithmetic import broken_line
from kubesched.plugins.shared.volume_claims import class_of
from kubesched.plugins.volume_binding.matching import NO_VOLUME
from kubesched.plugins.volume_binding.reach import within
from kubesched.plugins.volume_binding.search import VolumeFindings, VolumeSearch
from kubesched.state.columns import Int64

_SHAPE_SCALE = MAX_NODE_SCORE // 10
_FULL = 100
_STORAGE = "storage"


class CapacityScorer:
    """The mean, over storage classes, of a broken line from utilization to score."""

    def __init__(self, shape: Sequence[UtilizationShapePoint] | None) -> None:
        self._points = [(point.utilization, point.score * _SHAPE_SCALE) for point in shape or LESS_USED_IS_BETTER]

    def scores(self, findings: VolumeFindings, search: VolumeSearch, nodes: Nodes) -> Int64:
        return np.array([self._score(findings, search, nodes, i) for i in range(len(nodes))], dtype=np.int64)

    def _score(self, findings: VolumeFindings, search: VolumeSearch, nodes: Nodes, i: int) -> int:
        used = _space_bound(findings, search, i) or _space_to_provision(findings, search, nodes, i)
        if not used:
            return 0
        total = sum(broken_line(self._points, _utilization(*space)) for space in used.values())
        return int(total / len(used) + 0.5)


def _space_bound(findings: VolumeFindings, search: VolumeSearch, i: int) -> dict[str, tuple[int, int]]:
    """By class, how many bytes are asked for of how many, in volumes that exist."""
    used: dict[str, tuple[int, int]] = {}
    for claim, serials in findings.chosen:
        if serials[i] != NO_VOLUME:
            volume = search.offers.volume(int(serials[i]))
            requested, capacity = used.get(volume.spec.storage_class_name, (0, 0))
            used[volume.spec.storage_class_name] = (
                requested + _bytes(claim.spec.resources.requests.get(_STORAGE)),
                capacity + _bytes(volume.spec.capacity.get(_STORAGE)),
            )
    return used


def _space_to_provision(
    findings: VolumeFindings, search: VolumeSearch, nodes: Nodes, i: int
) -> dict[str, tuple[int, int]]:
    """The same in volumes to be made, where their driver reports capacity; all of a class come out of the same."""
    used: dict[str, tuple[int, int]] = {}
    row = Nodes(nodes.state, np.array([nodes.row(i)]))
    for claim, rows in findings.to_provision:
        sufficient = search.reports.sufficient_for(claim) if rows[i] else None
        source = next((report for report in sufficient or () if within(row, report.reach)[0]), None)
        if source is not None:
            requested, _ = used.get(class_of(claim), (0, 0))
            more = _bytes(claim.spec.resources.requests.get(_STORAGE))
            used[class_of(claim)] = (requested + more, _bytes(source.capacity.capacity))
    return used


def _bytes(quantity: QuantityText | None) -> int:
    return 0 if quantity is None else parse_quantity(quantity).value()


def _utilization(requested: int, capacity: int) -> int:
    return _FULL if capacity == 0 or requested > capacity else requested * _FULL // capacity

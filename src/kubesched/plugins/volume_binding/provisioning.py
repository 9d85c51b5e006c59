"""Where a volume can be made for a claim: the topology of its class, and the capacity that drivers report."""

from __future__ import annotations

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.quantity import parse_quantity
from kubesched.api.selectors import NodeTerm, compile_selector
from kubesched.api.storage import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubesched.api.well_known import NO_PROVISIONER
from kubesched.framework.nodes import Nodes
from kubesched.plugins.shared.volume_claims import class_of
from kubesched.plugins.volume_binding.reach import Reach, compiled, within, within_any
from kubesched.state.columns import Bool
from kubesched.state.objects import ObjectStore

_STORAGE = "storage"


def allowed_rows(claim: PersistentVolumeClaim, nodes: Nodes) -> Bool:
    """Per row whether the claim's class can make volumes that are of use there."""
    storage_class = nodes.state.objects.get(StorageClass, class_of(claim))
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return nodes.none()
    if not storage_class.allowed_topologies:
        return ~nodes.none()
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=e.key, operator="In", values=e.values) for e in term.match_label_expressions
            )
        )
        for term in storage_class.allowed_topologies
    )
    return within(nodes, compiled(NodeSelector(node_selector_terms=terms)))


def largest_volume(capacity: CSIStorageCapacity) -> int:
    """How large a volume may be; -1 if the report does not say."""
    # What a driver says of a single volume is more precise than the total.
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if limit is None else parse_quantity(limit).value()


class CapacityReport:
    """How much a class can still make in a part of the cluster."""

    __slots__ = ("capacity", "largest_volume", "reach")

    def __init__(self, capacity: CSIStorageCapacity) -> None:
        selector = compile_selector(capacity.node_topology)
        self.capacity = capacity
        self.largest_volume = largest_volume(capacity)
        self.reach: Reach = () if selector.nothing else (NodeTerm(selector.requirements, ()),)


class CapacityReports:
    """What drivers report, by storage class; kept in step with the watch."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._version = -1
        self._reports: dict[str, CapacityReport] = {}
        self._by_class: dict[str, list[CapacityReport]] = {}

    def rows_with_space(self, claim: PersistentVolumeClaim, nodes: Nodes) -> Bool:
        """Per row whether a new volume has room there; all rows if its driver does not report."""
        sufficient = self.sufficient_for(claim)
        return ~nodes.none() if sufficient is None else within_any(nodes, (report.reach for report in sufficient))

    def sufficient_for(self, claim: PersistentVolumeClaim) -> list[CapacityReport] | None:
        """The reports with room for the claim; None if capacity is no question for it."""
        size = claim.spec.resources.requests.get(_STORAGE)
        storage_class = self._objects.get(StorageClass, class_of(claim))
        driver = self._objects.get(CSIDriver, storage_class.provisioner) if storage_class else None
        if size is None or driver is None or not driver.spec.storage_capacity:
            return None
        self._refresh()
        needed = parse_quantity(size).value()
        return [report for report in self._by_class.get(class_of(claim), ()) if report.largest_volume >= needed]

    def _refresh(self) -> None:
        version = self._objects.version(CSIStorageCapacity)
        if version == self._version:
            return
        self._version = version
        before, self._reports, self._by_class = self._reports, {}, {}
        for capacity in self._objects.all(CSIStorageCapacity):
            report = before.get(capacity.key)
            if report is None or report.capacity is not capacity:
                report = CapacityReport(capacity)
            self._reports[capacity.key] = report
            self._by_class.setdefault(capacity.storage_class_name, []).append(report)

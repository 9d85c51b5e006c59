"""Where a volume can be made for a claim: the topology of its class, and the capacity that drivers report."""

from __future__ import annotations

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.quantity import QuantityText, parse_quantity
from kubesched.api.selectors import NodeTerm, compile_selector
from kubesched.api.storage import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubesched.framework.nodes import Nodes
from kubesched.plugins.volume_binding.reach import Reach, compiled, within, within_any
from kubesched.plugins.volume_claims import class_of
from kubesched.state.columns import Bool
from kubesched.state.objects import ObjectStore

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_STORAGE = "storage"


def allowed_rows(claim: PersistentVolumeClaim, nodes: Nodes) -> Bool:
    """Per row whether the claim's class can make volumes that are of use there."""
    storage_class = nodes.state.objects.get(StorageClass, class_of(claim))
    if storage_class is None or storage_class.provisioner in ("", _NO_PROVISIONER):
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


def rows_with_space(claim: PersistentVolumeClaim, nodes: Nodes) -> Bool:
    """Per row whether its drivers report enough space for a new volume; all rows where they do not report any."""
    sufficient = sufficient_capacities(claim, nodes.state.objects)
    if sufficient is None:
        return ~nodes.none()
    return within_any(nodes, (_accessible_from(capacity) for capacity in sufficient))


def sufficient_capacities(claim: PersistentVolumeClaim, objects: ObjectStore) -> list[CSIStorageCapacity] | None:
    """The reports that have room for the claim; None if capacity is no question for it."""
    size = claim.spec.resources.requests.get(_STORAGE)
    storage_class = objects.get(StorageClass, class_of(claim))
    driver = objects.get(CSIDriver, storage_class.provisioner) if storage_class else None
    if size is None or driver is None or not driver.spec.storage_capacity:
        return None
    needed = parse_quantity(size).value()
    return [
        capacity
        for capacity in objects.all(CSIStorageCapacity)
        if capacity.storage_class_name == class_of(claim)
        and capacity.node_topology is not None
        and (limit := _volume_limit(capacity)) is not None
        and parse_quantity(limit).value() >= needed
    ]


def _volume_limit(capacity: CSIStorageCapacity) -> QuantityText | None:
    """How large a volume may be: what the driver says of one volume is more precise than the total."""
    return capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size


def _accessible_from(capacity: CSIStorageCapacity) -> Reach:
    selector = compile_selector(capacity.node_topology)
    return () if selector.nothing else (NodeTerm(selector.requirements, ()),)

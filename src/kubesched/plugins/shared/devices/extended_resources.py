"""Extended resources that a device class serves: on nodes without a device plugin for them, devices are allocated."""

from __future__ import annotations

from kubesched.api.devices import IMPLICIT_PREFIX, DeviceClass
from kubesched.api.requests import is_extended
from kubesched.framework.cycle import Cycle
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


class ServedResources:
    """Which class serves which extended resource, kept in step with the classes."""

    def __init__(self, state: ClusterState) -> None:
        self._objects = state.objects
        self._may_serve = state.features.devices_as_resources
        self._version = -1
        self._class_of: dict[str, DeviceClass] = {}

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class that stands for the resource, by its own name or by one it was given.

        Of several classes with one name for a resource the newest serves it, then the first by name.
        """
        version = self._objects.version(DeviceClass)
        if version != self._version:
            self._version = version
            self._class_of = self._collect()
        return self._class_of.get(resource)

    def _collect(self) -> dict[str, DeviceClass]:
        if not self._may_serve:
            return {}
        classes = sorted(self._objects.all(DeviceClass), key=lambda c: c.name, reverse=True)
        classes.sort(key=lambda c: c.metadata.creation_timestamp)
        explicit = {c.spec.extended_resource_name: c for c in classes if c.spec.extended_resource_name}
        return explicit | {IMPLICIT_PREFIX + c.name: c for c in classes}


def extended_resources(cycle: Cycle) -> frozenset[str]:
    """The extended resources that the pod asks for; worked out once per equivalence class."""
    facts = cycle.shared_facts
    return facts.derived(extended_resources_of, facts)


def extended_resources_of(facts: PodFacts) -> frozenset[str]:
    """The extended resources that pods with these facts ask for."""
    return frozenset(name for name, amount, _ in facts.amounts if amount and may_be_served(name))


def served_by_devices(cycle: Cycle) -> frozenset[str]:
    """The extended resources of the pod that a DeviceClass serves."""
    return frozenset(name for name in extended_resources(cycle) if is_served(name, cycle.state))


def unserved(cycle: Cycle) -> list[int]:
    """Rows that lack an extended resource of the pod which neither they nor any device offers."""
    lacking = extended_resources(cycle) - served_by_devices(cycle)
    return [
        row
        for row, node in enumerate(cycle.state.nodes.nodes)
        if node is not None and not lacking <= node.status.allocatable.keys()
    ]


def is_served(resource: str, state: ClusterState) -> bool:
    """Whether some device class stands for the extended resource."""
    return state.companion(ServedResources).class_of(resource) is not None


def may_be_served(name: str) -> bool:
    """Whether it is the kind of name that devices can stand for."""
    return is_extended(name) or name.startswith(IMPLICIT_PREFIX)

"""The cluster that is asked about, with its workloads: no decision looks at them, but questions do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.kinds import WORKLOADS, Workload
from kubesched.simulate.workloads import as_owner


class ServedCluster(SimulatedCluster):
    """A cluster that also takes workloads, and keeps them with their templates."""

    def __init__(self, objects: Iterable[KubeObject], configuration: SchedulerConfiguration, **options: Any) -> None:
        """The options are those of every simulated cluster."""
        given = list(objects)
        self.workloads: dict[tuple[type[KubeObject], str], Workload] = {}
        """By kind and `namespace/name`."""
        super().__init__([obj for obj in given if not isinstance(obj, Workload)], configuration, **options)
        for obj in given:
            if isinstance(obj, Workload):
                self.handle(Change(None, obj))

    def handle(self, change: Change[KubeObject]) -> None:
        """Of a workload the scheduler sees no more than that it owns pods."""
        obj = change.obj
        if not isinstance(obj, Workload):
            super().handle(change)
            return
        if change.new is None:
            self.workloads.pop((type(obj), obj.key), None)
        else:
            self.workloads[type(obj), obj.key] = obj
        owner = as_owner(obj)
        if owner is not None:
            super().handle(Change(owner, None) if change.new is None else Change(None, owner))

    def objects(self) -> list[KubeObject]:
        """All there is now. Records never change, so another thread may have the list."""
        nodes = (node for node in self.state.nodes.nodes if node is not None)
        others = (
            obj for obj in self.state.objects if (WORKLOADS.get(type(obj).__name__), obj.key) not in self.workloads
        )
        return [*nodes, *others, *self.workloads.values(), *self.pods.values()]

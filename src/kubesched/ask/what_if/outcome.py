"""What becomes of a cluster: a simulation to its end, and who is where then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.simulate.report import SimulationReport
from kubesched.simulate.rolling_upgrade import RollingUpgrade
from kubesched.simulate.simulation import Progress, Simulation


@dataclass(frozen=True)
class ClusterOutcome:
    """A cluster once all that can happen has happened."""

    objects: tuple[KubeObject, ...]
    """As it was given."""
    report: SimulationReport
    pods: dict[str, tuple[Pod, str]]
    """All that are there at the end, with the reasons of those that wait, each by the name of the one it came from."""
    nodes: dict[str, Node]
    settled: tuple[KubeObject, ...]
    """The whole cluster at the end: what workloads were to make is made, pods are where they were placed."""
    has_groups: bool = False
    """Whether pod groups are scheduled as such."""


def outcome(
    objects: Iterable[KubeObject],
    settings: SchedulerConfiguration,
    *,
    seed: int = 0,
    plugins: Registry | None = None,
    upgrade: RollingUpgrade | None = None,
    progress: Progress | None = None,
) -> ClusterOutcome:
    """Simulate a cluster to the end."""
    given = tuple(objects)
    simulation = Simulation(given, settings, seed=seed, plugins=plugins, operation=upgrade)
    report = simulation.run(progress)
    nodes = {node.name: node for node in simulation.objects(Node)}
    pods, settled = simulation.pods_at_the_end(), simulation.objects_at_the_end()
    return ClusterOutcome(given, report, pods, nodes, settled, settings.features.pod_groups)

"""A cluster as the page looks at it: its state, its pods, its queue if it has one, and an engine of the page's own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.framework.budget import counting_looks
from kubesched.framework.engine import Engine
from kubesched.framework.extender import ignoring_managed_resources
from kubesched.framework.profile import Profile
from kubesched.framework.registry import Registry
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.simulate.cluster import profiles_of
from kubesched.state.cluster import ClusterState
from kubesched.ui.model.decisions import DecisionLog


@dataclass(frozen=True)
class Observed:
    """What a source hands to the page. Nothing in here is changed by looking at it."""

    kind: str
    """sandbox, manifests, ...: what the page says it is looking at."""
    title: str
    state: ClusterState
    pods: Mapping[str, Pod]
    """All pods by `namespace/name`."""
    engine: Engine
    """Decides on the same state, and is never the scheduler's own: asking must not draw from its random numbers."""
    profiles: Mapping[str, Profile]
    clock: Callable[[], float]
    """The clock of the queue, in seconds."""
    queue: SchedulingQueue | None = None
    """None where nothing is scheduled: then the page says what would become of pods that wait."""
    log: DecisionLog | None = None
    saying: Callable[[], str] = lambda: ""
    """What a story that plays in the cluster says at this moment."""
    extenders: int = 0
    """Extenders of the scheduler, which the page does not ask."""


def engine_for(
    state: ClusterState, configuration: SchedulerConfiguration, plugins: Registry | None
) -> tuple[Engine, dict[str, Profile]]:
    """An engine with plugins of its own on somebody else's state."""
    configuration = ignoring_managed_resources(configuration)
    profiles = profiles_of(configuration, plugins)
    percentage = configuration.percentage_of_nodes_to_score or 0
    draw = random.Random(0).randrange
    return Engine(state, profiles.values(), draw, percentage, budget=counting_looks()), profiles

"""What a simulation found out, as plain records: the story of every pod, who was pushed aside, how full it got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(slots=True)
class PodStory:
    """What became of one pod. Times are in seconds since the start; None is never."""

    pod: str
    priority: int
    arrived: float
    attempts: int = 0
    node: str = ""
    """Where it is or was."""
    placed: float | None = None
    finished: float | None = None
    evicted: float | None = None
    message: str = ""
    """Why it waits, in the words of its condition."""

    @property
    def is_pending(self) -> bool:
        return self.placed is None

    @property
    def waited(self) -> float:
        """From arrival to placement."""
        return 0.0 if self.placed is None else self.placed - self.arrived


@dataclass(frozen=True, slots=True)
class Preempted:
    """Pods that were evicted for one of higher priority."""

    time: float
    preemptor: str
    priority: int
    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a resource is requested, as a fraction of what there is."""

    end: float
    mean: float
    """Over the time of the simulation."""
    peak: float


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Requests on a node or in a zone."""

    name: str
    zone: str
    nodes: int
    cpu: Share
    memory: Share
    pods: int
    """At the end."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster at one time, after all that happened then."""

    time: float
    running: int
    pending: int
    placed: int
    """Placements so far."""
    cpu: float
    memory: float


@dataclass(frozen=True)
class SimulationReport:
    """The whole story."""

    seed: int
    nodes: int
    ended: float
    """When the last thing happened."""
    attempts: int
    not_created: int
    """Pods of workloads that make one after another, and never got to these."""
    pods: tuple[PodStory, ...]
    """In the order of arrival. Pods that ran from the start are not among them."""
    preemptions: tuple[Preempted, ...]
    total: Utilisation
    by_zone: tuple[Utilisation, ...]
    by_node: tuple[Utilisation, ...]
    timeline: tuple[Moment, ...]

    @cached_property
    def placed(self) -> list[PodStory]:
        """In the order of placement."""
        return sorted((story for story in self.pods if story.placed is not None), key=lambda s: s.placed or 0.0)

    @cached_property
    def pending(self) -> list[PodStory]:
        return [story for story in self.pods if story.is_pending]

    @property
    def evicted(self) -> int:
        return sum(len(preempted.victims) for preempted in self.preemptions)

    @cached_property
    def reasons(self) -> list[tuple[str, list[PodStory]]]:
        """Pending pods by the reason, that of most pods first."""
        groups: dict[str, list[PodStory]] = {}
        for story in self.pending:
            groups.setdefault(story.message, []).append(story)
        return sorted(groups.items(), key=lambda group: -len(group[1]))


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures by which two simulations are compared."""

    placed: int
    pending: int
    finished: int
    preemptions: int
    evicted: int
    attempts: int
    seconds: float
    mean_wait: float
    longest_wait: float
    nodes_used: int
    cpu_mean: float
    memory_mean: float
    cpu_spread: float
    memory_spread: float


def figures_of(report: SimulationReport) -> Figures:
    waits = [story.waited for story in report.placed]
    used = [node for node in report.by_node if node.cpu.peak or node.memory.peak or node.pods]
    return Figures(
        placed=len(report.placed),
        pending=len(report.pending),
        finished=sum(story.finished is not None for story in report.pods),
        preemptions=len(report.preemptions),
        evicted=report.evicted,
        attempts=report.attempts,
        seconds=report.ended,
        mean_wait=sum(waits) / len(waits) if waits else 0.0,
        longest_wait=max(waits, default=0.0),
        nodes_used=len(used),
        cpu_mean=report.total.cpu.mean,
        memory_mean=report.total.memory.mean,
        cpu_spread=_deviation([node.cpu.mean for node in report.by_node]),
        memory_spread=_deviation([node.memory.mean for node in report.by_node]),
    )


def _deviation(values: Sequence[float]) -> float:
    """The standard deviation: 0 if all nodes are equally full."""
    if not values:
        return 0.0
    mean = sum(values) / len(values)
    return float((sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5)


@dataclass(frozen=True, slots=True)
class Difference:
    """A pod that is not where it would be under another policy; an empty name is pending."""

    pod: str
    nodes: tuple[str, ...]
    """Per policy."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Per policy its name and its figures, and the pods that went elsewhere."""

    policies: tuple[str, ...]
    figures: tuple[Figures, ...]
    differences: tuple[Difference, ...]
    pods: int


def compare(policies: Sequence[str], reports: Sequence[SimulationReport]) -> Comparison:
    """Put reports of the same input side by side. Of a pod that was evicted and made anew, the last one counts."""
    placed = [{story.pod: story.node for story in report.pods} for report in reports]
    names = list(dict.fromkeys(pod for nodes in placed for pod in nodes))
    differences = []
    for pod in names:
        nodes = tuple(each.get(pod, "") for each in placed)
        if len(set(nodes)) > 1:
            differences.append(Difference(pod, nodes))
    return Comparison(tuple(policies), tuple(map(figures_of, reports)), tuple(differences), len(names))

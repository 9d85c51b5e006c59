"""What a simulation found out, as plain records: the story of every pod, evictions, how full nodes got.

`compare` puts several side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import pstdev

from kubesched.config import Duration


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
    replaces: str = ""
    """The pod that was there at first, if this one was made because that one was evicted."""

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
    resources: dict[str, Share]
    """Every resource that is offered, extended ones included; the devices of a driver under its name."""
    pods: int
    """At the end."""

    @property
    def cpu(self) -> Share:
        return self.resources["cpu"]

    @property
    def memory(self) -> Share:
        return self.resources["memory"]

    @property
    def notable(self) -> list[str]:
        """The resources that tables show: cpu, memory, whatever is requested, and what only some nodes have."""
        return [
            name
            for name, share in self.resources.items()
            if name in ("cpu", "memory") or share.peak or not name.startswith(("ephemeral-storage", "hugepages-"))
        ]


def title_of(resource: str) -> str:
    """What tables call it."""
    return {"cpu": "CPU", "memory": "Memory"}.get(resource, resource)


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster at one time, after all that happened then."""

    time: float
    running: int
    pending: int
    placed: int
    """Placements so far."""
    resources: dict[str, float]
    """What is requested of each, as a fraction of what there is."""


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
    mean: dict[str, float]
    """By resource: the share that is requested, over time."""
    spread: dict[str, float]
    """By resource: the standard deviation between the nodes that offer it; 0 if all are equally full."""


def figures_of(report: SimulationReport) -> Figures:
    waits = [story.waited for story in report.placed]
    used = [node for node in report.by_node if node.pods or any(share.peak for share in node.resources.values())]
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
        mean={name: share.mean for name, share in report.total.resources.items()},
        spread={name: spread_of(report, name) for name in report.total.resources},
    )


def spread_of(report: SimulationReport, resource: str) -> float:
    """The standard deviation between the nodes that offer the resource."""
    shares = [node.resources[resource].mean for node in report.by_node if resource in node.resources]
    return round(pstdev(shares), 4) if shares else 0.0


@dataclass(frozen=True, slots=True)
class PlacementDifference:
    """A pod that is not where it would be under another policy; an empty name is pending."""

    pod: str
    nodes: tuple[str, ...]
    """Per policy."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Per policy its name and its figures, and the pods that went elsewhere."""

    policies: tuple[str, ...]
    figures: tuple[Figures, ...]
    differences: tuple[PlacementDifference, ...]
    pods: int


def compare(policies: Sequence[str], reports: Sequence[SimulationReport]) -> Comparison:
    """Put reports of the same input side by side. Of a pod that was evicted and made anew, the last one counts."""
    placed = [{story.pod: story.node for story in report.pods} for report in reports]
    names = list(dict.fromkeys(pod for nodes in placed for pod in nodes))
    differences = []
    for pod in names:
        nodes = tuple(nodes_of_pod.get(pod, "") for nodes_of_pod in placed)
        if len(set(nodes)) > 1:
            differences.append(PlacementDifference(pod, nodes))
    return Comparison(tuple(policies), tuple(map(figures_of, reports)), tuple(differences), len(names))


def short_names(policies: Sequence[str]) -> list[str]:
    """The names of the files, or their paths if those are alike; the same file twice is numbered."""
    names = [Path(policy).name for policy in policies]
    if len(set(names)) == len(names):
        return names
    if len(set(policies)) == len(policies):
        return list(policies)
    return [f"{i}: {policy}" for i, policy in enumerate(policies, 1)]


def _plain(number: float) -> str:
    return f"{number:,.0f}"


def moment(seconds: float) -> str:
    """A time as people write it: `1h2m0s`."""
    return str(Duration(round(seconds, 3)))


_FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "placed": ("Pods placed", _plain),
    "pending": ("Pods pending at the end", _plain),
    "finished": ("Pods finished", _plain),
    "preemptions": ("Preemptions", _plain),
    "evicted": ("Pods evicted", _plain),
    "attempts": ("Attempts", _plain),
    "seconds": ("Virtual time", moment),
    "mean_wait": ("Mean wait for a node", moment),
    "longest_wait": ("Longest wait for a node", moment),
    "nodes_used": ("Nodes used", _plain),
}


def figures_in_words(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """The name of each figure, and what it is under each policy."""
    for key, (title, shown) in _FIGURES.items():
        yield title, [shown(getattr(figures, key)) for figures in comparison.figures]
    for title, shares in (
        ("requested, mean", [figures.mean for figures in comparison.figures]),
        ("deviation between nodes", [figures.spread for figures in comparison.figures]),
    ):
        for name in shares[0]:
            yield f"{title_of(name)}, {title}", [f"{share.get(name, 0.0):.1%}" for share in shares]

"""The same cluster under several policies, side by side: figures, and the pods that went elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubesched.config import Duration
from kubesched.simulate.report import Figures, SimulationReport, figures_of, title_of


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
        nodes = tuple(each.get(pod, "") for each in placed)
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


def _time(seconds: float) -> str:
    return str(Duration(round(seconds, 3)))


_FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "placed": ("Pods placed", _plain),
    "pending": ("Pods pending at the end", _plain),
    "finished": ("Pods finished", _plain),
    "preemptions": ("Preemptions", _plain),
    "evicted": ("Pods evicted", _plain),
    "attempts": ("Attempts", _plain),
    "seconds": ("Virtual time", _time),
    "mean_wait": ("Mean wait for a node", _time),
    "longest_wait": ("Longest wait for a node", _time),
    "nodes_used": ("Nodes used", _plain),
}


def figures_in_words(found: Comparison) -> Iterator[tuple[str, list[str]]]:
    """The name of each figure, and what it is under each policy."""
    for key, (title, shown) in _FIGURES.items():
        yield title, [shown(getattr(figures, key)) for figures in found.figures]
    for title, shares in (
        ("requested, mean", [figures.mean for figures in found.figures]),
        ("deviation between nodes", [figures.spread for figures in found.figures]),
    ):
        for name in shares[0]:
            yield f"{title_of(name)}, {title}", [f"{each.get(name, 0.0):.1%}" for each in shares]

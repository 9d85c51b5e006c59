"""Two or more policies on the same cluster and the same pods: their figures, and the pods they treat differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kubesched.simulate.report import SimulationReport, summary_of


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
    figures: tuple[dict[str, int | float], ...]
    differences: tuple[Difference, ...]
    pods: int

    def to_plain(self) -> dict[str, Any]:
        """Dictionaries, lists and scalars, for JSON."""
        return asdict(self)


def compare(policies: Sequence[str], reports: Sequence[SimulationReport]) -> Comparison:
    """Put reports of the same input side by side. Of a pod that was evicted and made anew, the last one counts."""
    placed = [{story.pod: story.node for story in report.pods} for report in reports]
    names = list(dict.fromkeys(pod for nodes in placed for pod in nodes))
    differences = []
    for pod in names:
        nodes = tuple(each.get(pod, "") for each in placed)
        if len(set(nodes)) > 1:
            differences.append(Difference(pod, nodes))
    return Comparison(tuple(policies), tuple(map(summary_of, reports)), tuple(differences), len(names))

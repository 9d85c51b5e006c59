"""The kinds of documents that commands print, and what each is made from: the types that docs/schemas describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.ask.explain import ExplanationFindings
from kubesched.ask.explain.explanation import Explanation
from kubesched.ask.output import API_VERSION, plain
from kubesched.ask.pending import PendingPods
from kubesched.ask.placement_tests.running import TestResults
from kubesched.ask.readiness import ReadinessReport
from kubesched.ask.releases.comparison import ReleaseComparison
from kubesched.ask.trial import FitAnswer
from kubesched.ask.version_answer import VersionAnswer
from kubesched.ask.what_if.answer import WhatIfAnswer
from kubesched.scheduler.replay import ReplayDifference
from kubesched.simulate.placement import CapacityAnswer, PlacementReport
from kubesched.simulate.report import Comparison, Figures, SimulationReport


@dataclass(frozen=True)
class Skipped:
    """What of the input played no part."""

    skipped: Mapping[str, int]
    """Objects of kinds that scheduling does not look at, by kind."""


@dataclass(frozen=True)
class Summary:
    """A simulation in figures."""

    summary: Figures


@dataclass(frozen=True)
class ReplayAnswer:
    """What `kubesched replay` found."""

    decisions: int
    differences: tuple[ReplayDifference, ...]


@dataclass(frozen=True)
class InstalledPlugin:
    """A plugin that a configuration may name."""

    name: str
    origin: str
    """kubesched, or the package with its version."""
    points: tuple[str, ...]
    """Its extension points, as configurations name them."""


@dataclass(frozen=True)
class PluginList:
    """All of them, by name."""

    items: tuple[InstalledPlugin, ...]


@dataclass(frozen=True)
class ExplanationList:
    """Explanations of several pods."""

    items: tuple[dict[str, Any], ...]


PARTS: dict[str, tuple[type, ...]] = {
    "Capacity": (CapacityAnswer,),
    "Comparison": (Comparison, Skipped),
    "Explanation": (Explanation, ExplanationFindings, Skipped),
    "ExplanationList": (ExplanationList,),
    "Fit": (FitAnswer,),
    "PendingPods": (PendingPods, Skipped),
    "PluginList": (PluginList,),
    "Placement": (PlacementReport, Skipped),
    "Readiness": (ReadinessReport,),
    "ReleaseComparison": (ReleaseComparison, Skipped),
    "Replay": (ReplayAnswer,),
    "Simulation": (SimulationReport, Summary, Skipped),
    "TestResults": (TestResults,),
    "Version": (VersionAnswer,),
    "WhatIf": (WhatIfAnswer, Skipped),
}
"""By kind: a document has the fields of all these, side by side."""


def answer(*parts: object) -> dict[str, Any]:
    """The document of these parts."""
    kind = next(kind for kind, types in PARTS.items() if tuple(map(type, parts)) == types)
    fields: dict[str, Any] = {}
    for part in parts:
        fields |= plain(part, leave_out_empty=True)
    return {"apiVersion": API_VERSION, "kind": kind, **fields}

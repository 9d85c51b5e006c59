"""The feature gates of kube-scheduler by release: stages, defaults, dependencies.

The tables (feature_gates-1.36.tsv and so on) are written by tools/feature_gates.py from upstream's lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kubesched.api.release import Release


class FeatureStage(StrEnum):
    """The stage of a feature."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Gate(NamedTuple):
    """A feature: its stage, whether it is on, and whether that can be changed."""

    stage: FeatureStage
    default: bool
    locked: bool = False
    needs: tuple[str, ...] = ()
    """Features without which this one cannot be on; those that are always on are left out."""


def gates_of(release: Release) -> Mapping[str, Gate]:
    """All gates of a release, by name."""
    return _table(release.name)


@cache
def _table(name: str) -> Mapping[str, Gate]:
    text = files(__package__).joinpath(f"feature_gates-{name}.tsv").read_text(encoding="utf-8")
    gates = {}
    for line in text.splitlines()[2:]:
        gate, stage, default, locked, needs = line.split("\t")
        gates[gate] = Gate(
            FeatureStage(stage.replace("GA", "")), default == "true", locked == "locked", tuple(needs.split())
        )
    return gates

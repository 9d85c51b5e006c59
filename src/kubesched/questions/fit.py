"""Would these pods fit? They are placed one after another, each standing where it went for those after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.questions.trial import Trial
from kubesched.simulate.placement import Placed, Unplaced


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether pods would find nodes, and which."""

    fits: bool
    """Whether all of them would."""
    nodes: int
    """How many nodes there are, with the changes that were supposed."""
    placed: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]


def fit(trial: Trial, pods: Iterable[Pod]) -> Fit:
    """Place the pods in this order on the cluster of a trial."""
    outcomes = [trial.place(pod) for pod in pods]
    placed = tuple(each for each in outcomes if isinstance(each, Placed))
    unplaced = tuple(each for each in outcomes if isinstance(each, Unplaced))
    return Fit(not unplaced, trial.cluster.state.nodes.live_count, placed, unplaced)

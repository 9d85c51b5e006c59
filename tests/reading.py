"""What a decision says, by the names of nodes, so that tests can be sentences about it.

All but victims and nominations must have been made with `explain=True`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kubesched.framework.decision import Decision
from kubesched.framework.status import Status


def rejections(decision: Decision) -> dict[str, str]:
    """Node -> why it was rejected, in the words of the first filter that did."""
    return {name: status.message for name, status in statuses(decision).items()}


def statuses(decision: Decision) -> dict[str, Status]:
    """Node -> the status of the first filter that rejected it."""
    outcome, names = decision.trace.filter_outcome, _names(decision)
    assert outcome is not None
    found = ((names[row], outcome.status_of(row)) for row in np.flatnonzero(outcome.considered).tolist())
    return {name: status for name, status in found if status is not None}


def raw_scores(decision: Decision, plugin: str) -> dict[str, int]:
    """Node -> the score of one plugin, before it is normalised."""
    scores = decision.trace.scores
    assert scores is not None, "nothing was scored"
    return _by_name(decision, next(part.raw for part in scores.parts if part.plugin == plugin))


def scores_of(decision: Decision, plugin: str) -> dict[str, int]:
    """Node -> the score of one plugin, normalised and times its weight."""
    scores = decision.trace.scores
    assert scores is not None, "nothing was scored"
    return _by_name(decision, next(part.weighted for part in scores.parts if part.plugin == plugin))


def totals(decision: Decision) -> dict[str, int]:
    """Node -> the sum of all scores."""
    scores = decision.trace.scores
    assert scores is not None, "nothing was scored"
    return _by_name(decision, scores.total)


def victims(decision: Decision) -> set[str]:
    """The pods that would have to go."""
    assert decision.post_filter is not None
    return {victim.pod.name for victim in decision.post_filter.victims}


def nominated(decision: Decision) -> str | None:
    """The node that preemption chose."""
    assert decision.post_filter is not None
    return decision.post_filter.nominated


def _by_name(decision: Decision, column: npt.NDArray[Any] | int) -> dict[str, int]:
    scores, names = decision.trace.scores, _names(decision)
    assert scores is not None
    rows = scores.nodes.row_ids.tolist()
    return {names[row]: score for row, score in zip(rows, np.broadcast_to(column, len(rows)).tolist())}


def _names(decision: Decision) -> list[str]:
    return decision.cycle.state.nodes.names

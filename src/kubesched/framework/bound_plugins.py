"""Plugins of a profile at work on a cluster: their calls, each bound once (`bound_call`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kubesched.framework.answers import AnswerCache, ScoreAnswer, ask_about_some, ask_for_ids
from kubesched.framework.cycle import Cycle, bound_call
from kubesched.framework.nodes import Nodes, WhatIf
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from kubesched.framework.reads import SkipRule
from kubesched.framework.status import Status
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32


class BoundPreFilter:
    """A pre-filter, with its call."""

    __slots__ = ("name", "plugin", "pre_filter", "skips_class")

    def __init__(self, plugin: PreFilterPlugin) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.pre_filter = bound_call(plugin.name, "PreFilter", plugin.pre_filter)
        self.skips_class = SkipRule(plugin.pre_filter_reads).holds_for_class


class BoundFilter:
    """A filter, and the ways in which it is asked about rows."""

    __slots__ = (
        "_answers",
        "_state",
        "ask",
        "ask_about_some",
        "cached_answer",
        "check",
        "filter",
        "filter_node",
        "goes_by_objects",
        "name",
        "plugin",
    )

    def __init__(self, plugin: FilterPlugin, state: ClusterState, answers: AnswerCache) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self._state = state
        self._answers = answers
        self.goes_by_objects = plugin.is_cached and not (plugin.looks_at_totals or plugin.looks_at_pods)
        """Whether its cached answer holds whatever pods come and go on a node."""
        bind = partial(bound_call, plugin.name, "Filter")
        self.filter = bind(plugin.filter)
        self.filter_node = bind(plugin.filter_node)
        self.cached_answer = bind(partial(answers.ask_filter, plugin))
        self.ask_about_some = bind(partial(ask_about_some, plugin))
        self.ask = bind(self._ask)
        self.check = bind(self._check)

    def _ask(self, cycle: Cycle, standing: Bool, exhaustive: bool) -> tuple[Int32 | None, Bool]:
        """The rejection ids of all rows and where the filter passes; no ids if it passes everywhere."""
        plugin, state = self.plugin, self._state
        if plugin.is_cached:
            answer = self._answers.ask_filter(plugin, cycle)
            return (answer.ids, answer.passes) if answer.rejected_count else (None, standing)
        if plugin.is_columnar:
            ids = ask_for_ids(plugin, cycle, Nodes(state))
        else:
            # One node at a time is slow: ask only about rows that earlier filters let pass.
            rows = np.flatnonzero(state.nodes.live[: state.nodes.size] if exhaustive else standing)
            ids = np.zeros(state.nodes.size, dtype=np.int32)
            ids[rows] = plugin.filter(cycle, Nodes(state, rows))
        passes = ids == 0
        return (None, standing) if passes.all() else (ids, passes)

    def _check(self, cycle: Cycle, world: WhatIf) -> Status | None:
        """The rejection of the single row of a view."""
        plugin = self.plugin
        if self.goes_by_objects:
            # The view differs from the node only by pods, on which the answer does not depend.
            return plugin.rejections.statuses[int(self._answers.ask_filter(plugin, cycle).ids[world.row(0)])]
        if plugin.answers_both_ways:
            return plugin.filter_node(cycle, world.view(0))
        return plugin.rejections.statuses[int(plugin.filter(cycle, world)[0])]


class BoundPreScore:
    """A pre-score, with its call."""

    __slots__ = ("name", "plugin", "pre_score", "skips_class")

    def __init__(self, plugin: PreScorePlugin) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.pre_score = bound_call(plugin.name, "PreScore", plugin.pre_score)
        self.skips_class = SkipRule(plugin.pre_score_reads).holds_for_class


class BoundScore:
    """A score with its weight."""

    __slots__ = ("_answers", "_state", "cached_answer", "name", "plugin", "score_node", "weight")

    def __init__(self, plugin: ScorePlugin, weight: int, state: ClusterState, answers: AnswerCache) -> None:
        self.plugin = plugin
        self.weight = weight
        self.name = plugin.name
        self._state = state
        self._answers = answers
        bind = partial(bound_call, plugin.name, "Score")
        self.score_node = bind(plugin.score_node)
        self.cached_answer = bind(self._cached_answer)

    def _cached_answer(self, cycle: Cycle) -> tuple[ScoreAnswer, Any]:
        """The scores of all rows; and the same normalised, if they are one number."""
        answer = self._answers.ask_score(self.plugin, cycle)
        if self.plugin.normalizes and isinstance(answer.scores, int):
            return answer, self.plugin.normalize(cycle, answer.scores, Nodes(self._state))
        return answer, answer.scores

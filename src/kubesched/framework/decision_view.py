"""The one reader of a decision's trace: columns first, rows only when they are asked for.

`kubesched explain`, the page, shadow mode and the search for remedies read decisions through it, so that all of them
name the same rejections and the same nearest misses. It costs as little for 5,000 nodes as for 5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

import numpy as np

from kubesched.framework.advice import AdvicePlugin, MissingResource
from kubesched.framework.decision import Decision
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.extender import EXTENDER
from kubesched.framework.nodes import Nodes
from kubesched.framework.profile import Profile
from kubesched.framework.scores import Scored
from kubesched.framework.status import Status, unresolvable
from kubesched.state.columns import Bool, Float, Int64, Rows

MOST_EXAMPLES = 3
MOST_REASONS = 6


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A node that almost fits."""

    node: str
    text: str
    """Why the node is a miss: `lacks 200m cpu`."""
    lacking: tuple[MissingResource, ...] = ()
    plugins: tuple[str, ...] = ()
    """The plugins that reject the node."""


@dataclass(frozen=True, slots=True)
class RejectionReason:
    """A reason for which a plugin rejects some nodes."""

    text: str
    nodes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilterStep:
    """A plugin that rejects nodes: how many came to it and how many it let pass."""

    plugin: str
    came: int
    passed: int
    reasons: tuple[RejectionReason, ...]


class DecisionView:
    """A decision that was made with `explain`, by rows of the node table. Valid until the cluster's state changes."""

    def __init__(self, decision: Decision, profile: Profile | None = None) -> None:
        """Without a profile its plugins cannot be asked: then there are no nearest misses."""
        self.decision = decision
        self._profile = profile
        self.cycle = decision.cycle
        self.state = decision.cycle.state
        self.names = self.state.nodes.names
        self.live: Bool = self.state.nodes.live[: self.state.nodes.size]
        self.pre_filter = decision.trace.pre_filter
        self.outcome = decision.trace.filter_outcome
        scores = decision.trace.scores
        self.scores = None if scores is None or scores.broken else scores
        """None if no node was scored."""

    @property
    def profile(self) -> Profile:
        assert self._profile is not None
        return self._profile

    @property
    def rejected_whole(self) -> Status | None:
        """The rejection of the pod itself, before any node was looked at."""
        return self.pre_filter.rejected if self.pre_filter is not None else None

    @property
    def is_nominated(self) -> bool:
        """Whether the pod was nominated to its node earlier, so that scores did not matter."""
        return bool(self.decision.node) and self.decision.node == self.decision.pod.status.nominated_node_name

    @property
    def fitting(self) -> int:
        return 0 if self.outcome is None else int(np.count_nonzero(self.outcome.feasible & self.live))

    @cached_property
    def left_out(self) -> Status:
        """The rejection of nodes that pre-filters left out."""
        names = " ".join(sorted(self.pre_filter.narrowed_by)) if self.pre_filter is not None else ""
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]").by(names)

    # -- one row ------------------------------------------------------------------------------------------------------

    def row_of(self, node: str) -> int | None:
        """The row of a node; None if there is no such node."""
        row = self.state.nodes.row_of.get(node)
        return row if row is not None and row < len(self.live) and self.live[row] else None

    def rejection(self, row: int) -> Status | None:
        """The rejection of this row that counts; None if the node fits, or was not looked at."""
        if self.outcome is None:
            return self.rejected_whole
        status = self.outcome.status_of(row)
        return self.left_out if status is None and not self.outcome.considered[row] else status

    def objections(self, row: int) -> list[Status]:
        """The rejection that counts, then those of all other plugins that reject the row as well."""
        first = self.rejection(row)
        others = self.outcome.rejections_of(row) if self.outcome is not None else []
        return [] if first is None else [first, *(status for status in others if status != first)]

    def is_rejected_for_nominated(self, row: int) -> bool:
        """Whether the row is rejected only because room must be left for pods that are nominated to it."""
        if self.outcome is None or not self.outcome.is_overridden(row) or self.outcome.rejections_of(row):
            return False
        status = self.outcome.status_of(row)
        return status is not None and status.plugin != EXTENDER

    def rows_by_rejection(self, rows: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Each row with the first of these rows about which all filters answer the same."""
        outcome = self.outcome
        if outcome is None:
            first = next(iter(rows), 0)
            yield from ((row, first) for row in rows)
            return
        columns = [ids for _, ids in (*outcome.for_nominated, *outcome.columns)]
        answers = np.vstack([outcome.considered[: len(self.live)], *columns]).T.tolist()
        first_rows: dict[tuple[int, ...], int] = {}
        for row in rows:
            yield row, row if row in outcome.overrides else first_rows.setdefault(tuple(answers[row]), row)

    # -- all rows -----------------------------------------------------------------------------------------------------

    def rejecting_plugins(self, bits: dict[str, int]) -> Int64:
        """Per row a bit for each plugin that rejects it. `bits` has the bit of each plugin, and gets new ones."""

        def bit(plugin: str) -> int:
            return bits.setdefault(plugin, 1 << len(bits))

        rejectors = np.zeros(len(self.live), dtype=np.int64)
        if self.rejected_whole is not None:
            return rejectors | bit(self.rejected_whole.plugin)
        if self.outcome is None:
            return rejectors
        for name in self.pre_filter.narrowed_by if self.pre_filter is not None else ():
            rejectors[~self.outcome.considered] |= bit(name)
        for rejections, ids in (*self.outcome.columns, *self.outcome.for_nominated):
            rejectors[ids != 0] |= bit(rejections.plugin)
        for row, status in self.outcome.overrides.items():
            rejectors[row] |= bit(status.plugin)
        return rejectors

    def nearest_rows(self, most: int | None = None, among: Bool | None = None) -> list[int]:
        """The rows that filters rejected, the nearest first: by the number of plugins that reject them, then by the sum
        of the distances that those plugins measure (`AdvicePlugin.distance`), then by name.

        The sum, not the worst of the distances: it is what the pod would have to give up altogether, and so the first
        node is the one that a remedy such as "request what node-1 has left" names. Nodes that pre-filters left out are
        no misses: the pod names the nodes that it wants.
        """
        if self.outcome is None:
            return []
        missed = self.live & self.outcome.considered & ~self.outcome.feasible
        rows: Rows = np.flatnonzero(missed if among is None else missed & among)
        most = len(rows) if most is None else min(most, len(rows))
        if not most:
            return []
        bits: dict[str, int] = {}
        plugins = self.rejecting_plugins(bits)[rows]
        count = np.bitwise_count(plugins)
        most_plugins = np.partition(count, most - 1)[most - 1]
        near = count <= most_plugins
        rows, plugins, count = rows[near], plugins[near], count[near]
        distance = np.zeros(len(rows))
        for plugin, bit in bits.items():
            rejected = plugins & bit != 0
            distance[rejected] += self._distance(plugin, rows[rejected])
        last = np.where(count == most_plugins, distance, -np.inf)
        near = last <= np.partition(last, most - 1)[most - 1]
        rows, count, distance = rows[near], count[near], distance[near]
        names = map(self.names.__getitem__, rows.tolist())
        nearest = nsmallest(most, zip(count.tolist(), distance.tolist(), names))
        return [self.state.nodes.row_of[name] for _, _, name in nearest]

    def _distance(self, plugin: str, rows: Rows) -> Float | float:
        adviser = self._advice.get(plugin)
        if adviser is None:
            return 1.0
        return self.cycle.ask(plugin, "Advice", adviser.distance, self.cycle, Nodes(self.state, rows))

    @cached_property
    def _advice(self) -> dict[str, AdvicePlugin]:
        plugins = self.profile.plugins.items()
        return {name: plugin for name, plugin in plugins if isinstance(plugin, AdvicePlugin)}

    def near_misses(self, most: int, among: Bool | None = None) -> tuple[NearMiss, ...]:
        """The nearest of the nodes that filters rejected, and what is in the way there."""
        return tuple(map(self._near_miss, self.nearest_rows(most, among)))

    def _near_miss(self, row: int) -> NearMiss:
        texts, plugins = [], []
        lacking: tuple[MissingResource, ...] = ()
        node = Nodes(self.state).view(row)
        for status in self.objections(row):
            adviser = self._advice.get(status.plugin)
            shortfall = adviser and self.cycle.ask(status.plugin, "Advice", adviser.shortfall, self.cycle, node)
            texts.append(shortfall.text if shortfall else status.message.removeprefix("node(s) ") or status.plugin)
            lacking += shortfall.resources if shortfall else ()
            plugins.append(status.plugin)
        return NearMiss(self.names[row], "; ".join(texts), lacking, tuple(plugins))

    # -- filters, one after another -----------------------------------------------------------------------------------

    def funnel(self) -> Iterator[FilterStep]:
        """The plugins that reject nodes which no plugin before them rejected, in their order."""
        remaining = int(np.count_nonzero(self.live))
        if self.rejected_whole is not None:
            reason = RejectionReason(self.rejected_whole.message, remaining, ())
            yield FilterStep(self.rejected_whole.plugin, remaining, 0, (reason,))
            return
        for plugin, rejected, reasons in self._rejected_rows():
            count = int(np.count_nonzero(rejected))
            if count:
                yield FilterStep(plugin, remaining, remaining - count, tuple(reasons))
                remaining -= count

    def _rejected_rows(self) -> Iterator[tuple[str, Bool, Iterable[RejectionReason]]]:
        outcome = self.outcome
        if outcome is None:
            return
        left_out = self.live & ~outcome.considered
        if self.pre_filter is not None and left_out.any():
            names = ", ".join(sorted(self.pre_filter.narrowed_by))
            yield names, left_out, (self._reason(f"{names} leaves only some nodes to look at", left_out),)
        overridden = np.zeros(len(self.live), dtype=np.bool_)
        overridden[list(outcome.overrides)] = True
        texts = Counter(status.message for status in outcome.overrides.values()).most_common(MOST_REASONS)
        yield "nominated pods, extenders", overridden, (RejectionReason(text, nodes, ()) for text, nodes in texts)
        for rejections, ids, rejected in outcome.first_rejections:
            counts = np.bincount(ids[rejected], minlength=len(rejections.statuses))
            common = [int(i) for i in np.argsort(-counts, kind="stable")[:MOST_REASONS] if counts[i]]
            statuses = ((rejections.status_of(i), rejected & (ids == i)) for i in common)
            reasons = (self._reason(status.message, rows) for status, rows in statuses if status is not None)
            yield rejections.plugin, rejected, reasons

    def _reason(self, text: str, rejected: Bool) -> RejectionReason:
        rows = np.flatnonzero(rejected)
        return RejectionReason(text, len(rows), tuple(self.names[row] for row in rows[:MOST_EXAMPLES].tolist()))

    # -- scores -------------------------------------------------------------------------------------------------------

    def ranking(self, most: int | None = None) -> list[int]:
        """Places in `scores`, the best first; of equally good nodes the chosen one, then by name."""
        if self.scores is None:
            return []
        total, rows = self.scores.total, self.scores.nodes.row_ids
        most = len(rows) if most is None else min(most, len(rows))
        if not most:
            return []
        best = np.flatnonzero(total >= np.partition(total, len(total) - most)[len(total) - most])
        names = [self.names[row] for row in rows[best].tolist()]
        chosen = self.decision.node
        order = zip((-total[best]).tolist(), (name != chosen for name in names), names, best.tolist())
        return [place for _, _, _, place in nsmallest(most, order)]

    def place_of(self, node: str) -> int | None:
        """The place of a node in `scores`; None if it was not scored."""
        if self.scores is None:
            return None
        places = np.flatnonzero(self.scores.nodes.row_ids == self.state.nodes.row_of.get(node, -1))
        return int(places[0]) if len(places) else None


def score_at(scores: Scored, place: int) -> int:
    """The score of one node; a plugin may give a single number for all."""
    return scores if isinstance(scores, int) else int(scores[place])


def main_reason(diagnosis: Diagnosis) -> str:
    """Why a pod waits, in short: the reason of the last filter that rejects any node, of nodes with fewest reasons.

    Not what most nodes lack: most nodes are outside the one pool that a pod asks for, and the pod waits for what the
    nodes of the pool lack, which pass more filters. Unlike the nearest miss it costs nothing, so that every failed
    attempt of a live scheduler has it.
    """
    if diagnosis.rejected is not None:
        return diagnosis.rejected.message
    assert diagnosis.filter_outcome is not None
    overriding = [*diagnosis.filter_outcome.overrides.values(), *diagnosis.extra.values()]
    tally = diagnosis.filter_outcome.tally
    if overriding:
        return overriding[0].message
    if not tally:
        return diagnosis.outside.message if diagnosis.outside is not None else ""
    last = tally[-1][0].plugin
    ranked = [(len(status.reasons), -rows, status.message) for status, rows in tally if status.plugin == last]
    return min(ranked)[2]

"""Trying changes on a cluster: they are applied to its state, the engine decides, and all is as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.cycle import CycleStateMissingError
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.questions.remedies.remedy import Edit, Option, changes_of
from kubesched.questions.trial import Trial
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Int64

OUTSIDE = 1
"""The bit of rows that pre-filters left out, or that nominated pods or the lack of a node rule out."""


class Verdict(NamedTuple):
    """What came of a trial."""

    node: str
    """Where the pod would go; empty if nowhere."""
    blocked: Int64
    """Per row a bit for each plugin that rejects it."""
    new_row: int = -1
    """The row of a node that the changes added, while they lasted."""


class Trials:
    """Changes for one pending pod, tried one after another, until they are over."""

    def __init__(self, cluster: ClusterModel, pod: Pod, *, most: int, out_of_time: Callable[[], bool]) -> None:
        self.cluster = cluster
        self.state = cluster.state
        self.pod = pod
        self.tried = 0
        self._most = most
        self._out_of_time = out_of_time
        # An engine of its own: what it draws must not change what the cluster's engine draws later.
        self._engine = Engine(cluster.state, cluster.profiles.values(), draw=lambda among: 0)
        self._bits: dict[str, int] = {}

    @property
    def are_over(self) -> bool:
        """Whether there may be no more."""
        return self.tried >= self._most or self._out_of_time()

    def fits(self, options: Iterable[Option]) -> bool:
        """Whether the pod finds a node once these changes are made."""
        return bool(self.run(options, explain=False).node)

    def node_with(self, options: Iterable[Option]) -> str:
        """Where the pod would go, Reserve included; empty if nowhere."""
        return self.run(options, explain=False, reserve=True).node

    def run(self, options: Iterable[Option], *, explain: bool = True, reserve: bool = False) -> Verdict:
        """The verdict on the cluster with these changes; `explain` also says what is in the way on every row."""
        edits = [edit for option in options for edit in option.edits]
        changes = changes_of(edits)
        pod = next((change.new for change in changes if change.old is self.pod), self.pod)
        assert isinstance(pod, Pod)
        self.tried += 1
        with changed(self.cluster, [change for change in changes if change.old is not self.pod]):
            if self._engine.pre_enqueue(pod) is not None:
                return Verdict("", self._everywhere(OUTSIDE))
            decision = self._engine.decide(_content(pod), explain=explain)
            added = next((c.obj.name for c in changes if c.old is None and isinstance(c.new, Node)), None)
            fits = decision.outcome is Outcome.SCHEDULED and (not reserve or self._can_reserve(decision))
            return Verdict(
                decision.node if fits else "",
                self._blocked(decision) if explain else self._everywhere(0),
                -1 if added is None else self.state.nodes.row_of[added],
            )

    def decide(self, pod: Pod, edits: Sequence[Edit] = ()) -> Decision:
        """The decision for a pod as it is given, making room included."""
        self.tried += 1
        with changed(self.cluster, changes_of(edits)):
            return self._engine.decide(pod, explain=True)

    def _can_reserve(self, decision: Decision) -> bool:
        """Whether all plugins can set aside what the pod needs; nothing is set aside afterwards."""
        try:
            with Trial(self.cluster) as trial:
                return trial.reserve(decision)
        except CycleStateMissingError:  # a point of a plugin is off that its Reserve builds upon
            return False

    def bit(self, plugin: str) -> int:
        """The bit of a plugin in `Verdict.blocked`."""
        return self._bits.setdefault(plugin, 2 << len(self._bits))

    def _blocked(self, decision: Decision) -> Int64:
        live = self.state.nodes.live[: self.state.nodes.size]
        blocked = np.where(live, 0, OUTSIDE)
        pre_filter, outcome = decision.trace.pre_filter, decision.trace.filter_outcome
        if pre_filter is not None and pre_filter.rejected is not None:
            return blocked | self.bit(pre_filter.rejected.plugin)
        if outcome is None:
            return blocked
        for name in pre_filter.narrowed_by if pre_filter is not None else ():
            blocked[~outcome.considered] |= self.bit(name)
        for rejections, ids in (*outcome.columns, *outcome.for_nominated):
            blocked[ids != 0] |= self.bit(rejections.plugin)
        for row, status in outcome.overrides.items():
            blocked[row] |= self.bit(status.plugin)
        return blocked

    def _everywhere(self, bits: int) -> Int64:
        return np.full(self.state.nodes.size, bits, dtype=np.int64)


def _content(pod: Pod) -> Pod:
    """The pod as one that evicts nobody: whether others could make room for it is another question."""
    return replace(pod, spec=replace(pod.spec, preemption_policy="Never"))


@contextmanager
def changed(cluster: ClusterModel, changes: Iterable[Change[KubeObject]]) -> Iterator[None]:
    """The cluster with these changes, for as long as the context lasts."""
    with Trial(cluster) as trial:
        for change in changes:
            trial.change(change)
        yield

"""Trying changes on a cluster: they are applied to its state, the engine decides, and all is as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.remedies.remedy import changes_of
from kubesched.ask.trial import Trial
from kubesched.framework.advice import RemedyProposal
from kubesched.framework.cycle import CycleStateMissingError
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.decision_view import DecisionView
from kubesched.framework.engine import Engine
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Int64

OUTSIDE = 1
"""The bit of rows that pre-filters left out, or that nominated pods or the lack of a node rule out."""


class TrialOutcome(NamedTuple):
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
        self._bits: dict[str, int] = {"": OUTSIDE}

    @property
    def are_over(self) -> bool:
        """Whether there may be no more."""
        return self.tried >= self._most or self._out_of_time()

    def fits(self, proposals: Iterable[RemedyProposal]) -> bool:
        """Whether the pod finds a node once these changes are made."""
        return bool(self.run(proposals, explain=False).node)

    def node_with(self, proposals: Iterable[RemedyProposal]) -> str:
        """Where the pod would go, Reserve included; empty if nowhere."""
        return self.run(proposals, explain=False, reserve=True).node

    def run(self, proposals: Iterable[RemedyProposal], *, explain: bool = True, reserve: bool = False) -> TrialOutcome:
        """The verdict on the cluster with these changes; `explain` also says what is in the way on every row."""
        edits = [edit for proposal in proposals for edit in proposal.edits]
        changes = changes_of(edits)
        pod = next((change.new for change in changes if change.old is self.pod), self.pod)
        assert isinstance(pod, Pod)
        self.tried += 1
        with changed(self.cluster, [change for change in changes if change.old is not self.pod]):
            if self._engine.pre_enqueue(pod) is not None:
                return TrialOutcome("", self._everywhere(OUTSIDE))
            decision = self._engine.decide(_without_preemption(pod), explain=explain)
            added = next((c.obj.name for c in changes if c.old is None and isinstance(c.new, Node)), None)
            fits = decision.outcome is Outcome.SCHEDULED and (not reserve or self._can_reserve(decision))
            return TrialOutcome(
                decision.node if fits else "",
                self._blocked(decision) if explain else self._everywhere(0),
                -1 if added is None else self.state.nodes.row_of[added],
            )

    def decide(self, pod: Pod) -> Decision:
        """The decision for a pod as it is given, making room included."""
        self.tried += 1
        return self._engine.decide(pod, explain=True)

    def _can_reserve(self, decision: Decision) -> bool:
        """Whether all plugins can set aside what the pod needs; nothing is set aside afterwards."""
        try:
            with Trial(self.cluster) as trial:
                return trial.reserve(decision)
        except CycleStateMissingError:  # a point of a plugin is off that its Reserve builds upon
            return False

    def _blocked(self, decision: Decision) -> Int64:
        view = DecisionView(decision, self.cluster.profiles[decision.profile])
        return np.where(view.live, view.rejecting_plugins(self._bits), OUTSIDE)

    def _everywhere(self, bits: int) -> Int64:
        return np.full(self.state.nodes.size, bits, dtype=np.int64)


def _without_preemption(pod: Pod) -> Pod:
    """The pod as one that evicts nobody: room that preemption makes is a remedy of its own."""
    return replace(pod, spec=replace(pod.spec, preemption_policy="Never"))


@contextmanager
def changed(cluster: ClusterModel, changes: Iterable[Change[KubeObject]]) -> Iterator[None]:
    """The cluster with these changes, for as long as the context lasts."""
    with Trial(cluster) as trial:
        for change in changes:
            trial.change(change)
        yield

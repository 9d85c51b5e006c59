"""The scheduler's engine as the judge of a plan: it accepts or refuses each placement, and all is undone at the end.

Every filter is asked, and every Reserve plugin: resources, affinity, spread, volumes, devices, ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType

import numpy as np
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.trial import Trial
from kubesched.framework.decision import Decision, Outcome
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Bool

Choose = Callable[[Bool], int]
"""Takes the rows that fit, and returns the one to take."""


class Oracle(AbstractContextManager["Oracle"]):
    """A cluster on which pods are taken off and placed for as long as the `with` block lasts."""

    def __init__(self, cluster: ClusterModel) -> None:
        self.cluster = cluster
        self.asked = 0
        """Placements that the engine was asked for."""
        self.refused = 0
        self._nodes = cluster.state.nodes
        self._trial = Trial(cluster)
        self._taken_off: set[str] = set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trial.__exit__(kind, error, trace)

    def trying(self) -> AbstractContextManager[Callable[[], None]]:
        """What is done within the block is undone at its end, unless what it yields is called before."""
        return self._trial.part()

    def row(self, node: str) -> int:
        return self._nodes.row_of[node]

    def name(self, row: int) -> str:
        return self._nodes.names[row]

    def only(self, rows: Iterable[int]) -> Bool:
        """These rows as a column."""
        column = np.zeros(self._nodes.size, dtype=np.bool_)
        column[list(rows)] = True
        return column

    def add_objects(self, objects: Iterable[KubeObject]) -> list[int]:
        """Hypothetical nodes with what belongs to them; the rows of the nodes."""
        rows = []
        for obj in objects:
            self._trial.change(Change(None, obj))
            if isinstance(obj, Node):
                rows.append(self.row(obj.name))
        return rows

    def take_off(self, pod: Pod) -> Pod:
        """The pod as if it had not been placed yet; whatever it held is free."""
        self._taken_off.add(pod.uid)
        return self._trial.take_off(pod)

    def feasible(self, pod: Pod, rows: Bool) -> Bool:
        """Those of the rows that pass every filter for a pod that has no node."""
        return self._feasible(self._decide(pod, rows))

    def place(self, pod: Pod, row: int) -> bool:
        """Put a pod that has no node on this one; whether it stands there now."""
        return self._stands(self._decide_on(pod, row))

    def place_anywhere(self, pod: Pod, rows: Bool | None = None, choose: Choose | None = None) -> int | None:
        """Put a pod that has no node on one of the rows; the row where it stands now, None if none takes it.

        Without `choose` the engine chooses by its scores. With it, what Reserve refuses is asked about no second time.
        """
        pod = self._trial.with_claims(pod)
        decision = self._decide(pod, rows)
        if choose is not None and decision.outcome is Outcome.SCHEDULED:
            row = choose(self._feasible(decision))
            if decision.node != self.name(row):
                decision = self._decide_on(pod, row)
        return self.row(decision.node) if self._stands(decision) else None

    def _decide_on(self, pod: Pod, row: int) -> Decision:
        """With a nomination the engine looks at one node only, unless that does not fit; the others do not count."""
        pod = self._trial.with_claims(pod)
        status = replace(pod.status, nominated_node_name=self.name(row))
        return self._decide(replace(pod, status=status), self.only([row]))

    def _decide(self, pod: Pod, rows: Bool | None) -> Decision:
        self.asked += 1
        engine = self.cluster.engine
        if pod.uid not in self._taken_off:
            gate = engine.pre_enqueue(pod)
            if gate is not None:
                decision = engine.decide(pod, candidate_rows=self.only(()), run_post_filter=False)
                decision.outcome, decision.status, decision.diagnosis = Outcome.GATED, gate, None
                return decision
        return engine.decide(pod, candidate_rows=rows, run_post_filter=False)

    def _feasible(self, decision: Decision) -> Bool:
        outcome = decision.trace.filter_outcome
        if decision.outcome is not Outcome.SCHEDULED:
            return self.only(())
        return self.only([self.row(decision.node)]) if outcome is None else outcome.feasible

    def _stands(self, decision: Decision) -> bool:
        if decision.outcome is Outcome.SCHEDULED and self._trial.reserve(decision):
            return True
        self.refused += 1
        return False

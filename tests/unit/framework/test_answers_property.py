"""An engine that lived through every change decides as one that has just been made for a cluster built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from tests.builders import make_engine
from tests.living_cluster import NODE_NAMES, LivingCluster

from kubesched.api.pod import Pod
from kubesched.framework.decision import Decision
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, ZONE, make_pod, node_term

WEB = make_pod("asker").label(app="web")

ASKERS: tuple[Pod, ...] = tuple(
    asker.build()
    for asker in (
        WEB,
        WEB.requests({"cpu": "900m", "memory": "1Gi"}).priority(7),
        WEB.requests({"a.b/gpu": 1, "a.b/nic": 1}).priority(7),
        WEB.toleration("dedicated", "a", effect="NoSchedule").toleration(
            operator="Exists", key="node.kubernetes.io/unschedulable"
        ),
        WEB.toleration(operator="Exists").image("nginx").prefers_node(node_term("disk", "In", "ssd"), weight=4),
        WEB.host_port(8080).toleration(operator="Exists").priority(20),
        WEB.host_port(8080, ip="10.0.0.1").toleration(operator="Exists"),
        WEB.node_selector(disk="ssd").toleration(operator="Exists"),
        WEB.requires_node(node_term(ZONE, "NotIn", "z1")).toleration(operator="Exists"),
        WEB.requires_node(node_term("metadata.name", "In", "n1"), node_term("metadata.name", "In", "n3")),
        WEB.on("n2"),
        WEB.spread(ZONE, app="web").toleration(operator="Exists"),
        WEB.spread(HOSTNAME, soft=True, app="web").spread(ZONE, soft=True, app="db").toleration(operator="Exists"),
        WEB.pod_affinity(ZONE, app="db").toleration(operator="Exists"),
        WEB.pod_anti_affinity(HOSTNAME, app="web").toleration(operator="Exists").priority(20),
        WEB.pod_affinity(ZONE, weight=5, app="db").pod_anti_affinity(HOSTNAME, weight=9, app="web"),
        WEB.requests(cpu="1").nominated("n1").priority(7),
    )
)


KIN: tuple[list[Pod], ...] = tuple(
    [
        kind.build(),
        kind.requires_node(node_term("metadata.name", "In", "n1")).build(),
        kind.requires_node(node_term("metadata.name", "In", "n2")).build(),
    ]
    for kind in (
        WEB.requests(cpu="1").toleration(operator="Exists"),
        WEB.spread(ZONE, app="web").spread(HOSTNAME, soft=True, app="web").host_port(8080),
        WEB.pod_affinity(ZONE, app="db").prefers_node(node_term("disk", "In", "ssd"), weight=4).priority(7),
    )
)
"""The same pod for anywhere, and for one node or another, as the controller of DaemonSets makes them."""


SAME_SPEC: tuple[list[Pod], ...] = tuple(
    [kind.build(), kind.label(app="db").build(), kind.label(index="1").build()]
    for kind in (
        WEB.requests(cpu="1").toleration(operator="Exists"),
        WEB.spread(HOSTNAME, soft=True, app="web").host_port(8080),
        WEB.pod_anti_affinity(HOSTNAME, app="web").prefers_node(node_term("disk", "In", "ssd"), weight=4).priority(7),
    )
)
"""Pods of the same spec whose labels differ, as those of an indexed Job."""


PROMISED: dict[str, Pod] = {
    pod.name: pod
    for pod in (
        make_pod("promised-1").requests(cpu="1").priority(7).build(),
        make_pod("promised-2").requests(cpu="1").label(app="web").host_port(8080).priority(20).build(),
        make_pod("promised-3").label(app="db").pod_anti_affinity(ZONE, app="web").priority(7).build(),
        ASKERS[-1],
    )
}
"""One of them is among those who ask: it is not in its own way."""


class AnswersStayTrue(LivingCluster):
    """Asks now and then, so that answers are old by one change or by many when they are needed again."""

    @initialize(
        askers=st.lists(st.sampled_from(ASKERS), min_size=2, max_size=3, unique_by=id)
        | st.sampled_from(KIN)
        | st.sampled_from(SAME_SPEC)
    )
    def begin_with_a_few_askers(self, askers: list[Pod]) -> None:
        self.engine = make_engine(self.state)
        self.promises: dict[str, str] = {}
        self.askers = askers
        # As in a queue: the facts of pods that wait live on, and with them all that plugins derived and kept there.
        self.waiting = [self.state.facts(asker) for asker in askers]

    @rule(data=st.data())
    def somebody_asks(self, data: st.DataObject) -> None:
        asker = data.draw(st.sampled_from(self.askers))
        fresh = self.built_anew()
        for name, node in self.promises.items():
            fresh.nominated.add(PROMISED[name], node)
        old = described(self.engine.decide(asker, explain=True), self.state)
        assert old == described(make_engine(fresh).decide(asker, explain=True), fresh)

    @rule(data=st.data())
    def somebody_asks_without_wanting_to_know_why(self, data: st.DataObject) -> None:
        asker = data.draw(st.sampled_from(self.askers))
        plain = self.engine.decide(asker)
        explained = self.engine.decide(asker, explain=True)
        assert (plain.outcome, plain.node, plain.score) == (explained.outcome, explained.node, explained.score)
        assert plain.message == explained.message

    @rule(name=st.sampled_from(sorted(PROMISED)), node=st.sampled_from(NODE_NAMES))
    def a_node_is_promised(self, name: str, node: str) -> None:
        self.promises.pop(name, None)
        self.promises[name] = node
        self.state.nominated.add(PROMISED[name], node)

    @rule(name=st.sampled_from(sorted(PROMISED)))
    def a_promise_is_taken_back(self, name: str) -> None:
        self.promises.pop(name, None)
        self.state.nominated.remove(PROMISED[name])


class AnswersStayTrueWithFewColumns(AnswersStayTrue):
    """Only one resource besides cpu, memory and storage has a column at a time; in the cluster built anew all have."""

    def __init__(self) -> None:
        super().__init__()
        self.state.nodes.most_columns = 4


def described(decision: Decision, state: ClusterState) -> dict[str, Any]:
    """All that was decided and said, by the names of nodes."""
    found = decision.post_filter
    return {
        "outcome": decision.outcome,
        "node": decision.node if decision.draw.among == 1 else "",
        "among": decision.draw.among,
        "score": decision.score,
        "counts": (decision.evaluated, decision.feasible),
        "message": decision.message,
        "nominated": found and found.nominated,
        "victims": found and [victim.pod.uid for victim in found.victims],
        "filters": _rejections(decision, state),
        "scores": _scores(decision, state),
    }


def _rejections(decision: Decision, state: ClusterState) -> dict[str, Any]:
    outcome = decision.trace.filter_outcome
    if outcome is None:
        return {}
    rows = np.flatnonzero(outcome.considered).tolist()
    said: dict[str, Any] = {
        state.nodes.names[row]: [outcome.status_of(row), *outcome.rejections_of(row)] for row in rows
    }
    return said


def _scores(decision: Decision, state: ClusterState) -> dict[str, Any]:
    scores = decision.trace.scores
    if scores is None:
        return {}
    names = [state.nodes.names[row] for row in scores.nodes.row_ids.tolist()]
    parts = {part.plugin: (_by_name(names, part.raw), _by_name(names, part.weighted)) for part in scores.parts}
    return {
        "parts": parts,
        "total": _by_name(names, scores.total),
        "skipped": set(scores.skipped),
        "broken": scores.broken,
    }


def _by_name(names: list[str], column: Any) -> dict[str, int]:
    return dict(zip(names, np.broadcast_to(column, len(names)).tolist()))


TestAnswersStayTrue = AnswersStayTrue.TestCase
TestAnswersStayTrue.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)

TestAnswersStayTrueWithFewColumns = AnswersStayTrueWithFewColumns.TestCase
TestAnswersStayTrueWithFewColumns.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)

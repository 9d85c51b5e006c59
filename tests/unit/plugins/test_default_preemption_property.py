"""Nodes with nominated pods are judged, and victims are found, as if every node were looked at by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_cluster, make_engine

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.pod import DiskSource, Volume
from kubesched.api.workloads import BudgetSpec, BudgetStatus, PodDisruptionBudget
from kubesched.framework.decision import Decision
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod

NODES = ("a", "b", "c", "d")
APPS = ("web", "db")


@st.composite
def nodes(draw: st.DrawFn) -> list[NodeBuilder]:
    """Four nodes in two zones; the room for pods may run out before the cpu does."""
    found = []
    for i, name in enumerate(NODES):
        node = make_node(name).capacity(pods=draw(st.integers(2, 5))).zone(f"z{i % 2}")
        found.append(node.taint("dedicated") if draw(st.integers(0, 5)) == 0 else node)
    return found


def _tolerating(pod: PodBuilder) -> PodBuilder:
    return pod.toleration("dedicated", operator="Exists")


def _with_disk(pod: PodBuilder) -> PodBuilder:
    disk = DiskSource(volume_id="vol-1")
    return pod.spec(volumes=(Volume(name="disk", aws_elastic_block_store=disk),))


WISHES: tuple[Callable[[PodBuilder], PodBuilder], ...] = (
    lambda pod: pod,
    lambda pod: pod,
    lambda pod: pod.host_port(80),
    lambda pod: pod.host_port(80, ip="10.0.0.1"),
    lambda pod: pod.pod_anti_affinity(HOSTNAME, app="web"),
    lambda pod: pod.pod_anti_affinity(ZONE, app="db"),
    lambda pod: pod.pod_affinity(ZONE, app="db"),
    lambda pod: pod.spread(ZONE, app="web"),
    lambda pod: pod.spread(HOSTNAME, max_skew=2, app="web"),
    _tolerating,
    _with_disk,
)


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    """A pod of some size and importance that may want something of its neighbours."""
    pod = make_pod(name).label(app=draw(st.sampled_from(APPS))).priority(draw(st.integers(0, 4)))
    cpu, memory = draw(st.sampled_from(["0", "500m", "1", "2", "3"])), draw(st.sampled_from(["0", "3Gi"]))
    return draw(st.sampled_from(WISHES))(pod.requests(cpu=cpu, memory=memory))


@st.composite
def placed(draw: st.DrawFn) -> list[PodBuilder]:
    """Pods on nodes that are full or nearly so. No two started at the same time, so no two are alike."""
    return [
        draw(pods(f"p{i}"))
        .started(f"2026-01-01T00:{draw(st.integers(0, 3)):02}:{i:02}Z")
        .on(draw(st.sampled_from(NODES)))
        for i in range(draw(st.integers(1, 14)))
    ]


@st.composite
def promises(draw: st.DrawFn) -> list[tuple[PodBuilder, str]]:
    """Nominated pods, now and then to a node that does not exist."""
    return [
        (draw(pods(f"promised{i}")), draw(st.sampled_from((*NODES, "gone")))) for i in range(draw(st.integers(0, 5)))
    ]


@st.composite
def budgets(draw: st.DrawFn) -> list[PodDisruptionBudget]:
    return [
        PodDisruptionBudget(
            metadata=ObjectMeta(name=app, namespace="default"),
            spec=BudgetSpec(selector=LabelSelector(match_labels={"app": app})),
            status=BudgetStatus(disruptions_allowed=draw(st.integers(0, 2))),
        )
        for app in APPS
        if draw(st.booleans())
    ]


def outcome(decision: Decision, state: ClusterState) -> dict[str, Any]:
    found, filters = decision.post_filter, decision.trace.filter_outcome
    rows = [] if filters is None else np.flatnonzero(filters.considered).tolist()
    return {
        "node": decision.node,
        "message": decision.message,
        "nominated": found and found.nominated,
        "victims": found and [victim.pod.name for victim in found.victims],
        "nodes": {state.nodes.names[row]: filters and filters.status_of(row) for row in rows},
        "others": found
        and found.details.run
        and {
            state.nodes.names[c.row]: ([victim.pod.name for victim in c.victims], c.violations)
            for c in found.details.run.candidates()
        },
    }


@settings(max_examples=300, deadline=None)
@given(
    nodes=nodes(),
    placed=placed(),
    guards=budgets(),
    promises=promises(),
    askers=st.lists(pods("urgent"), min_size=1, max_size=3),
    itself=st.none() | st.sampled_from(NODES),
)
def test_looking_at_many_nodes_at_once_is_the_same_as_at_one_after_another(
    nodes: list[NodeBuilder],
    placed: list[PodBuilder],
    guards: list[PodDisruptionBudget],
    promises: list[tuple[PodBuilder, str]],
    askers: list[PodBuilder],
    itself: str | None,
) -> None:
    state = make_cluster(*nodes, *guards, *placed)
    for promised, node in promises:
        state.nominated.add(promised.build(), node)
    together, row_by_row = make_engine(state), make_engine(state, row_by_row=True)
    for asker in askers:
        urgent = asker.priority(3).nominated(itself or "").build()
        if itself is not None:
            state.nominated.add(urgent, itself)
        for explain in (False, True):
            expected = outcome(row_by_row.decide(urgent, explain=explain), state)
            assert outcome(together.decide(urgent, explain=explain), state) == expected

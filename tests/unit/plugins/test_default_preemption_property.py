"""Victims are the same whether nodes are worked on all at once or one at a time.

A pod that wants a port looks further than totals, so its nodes are worked on one at a time. If nobody has that port, it
should make no difference.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_cluster, make_engine

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.workloads import BudgetStatus, PodDisruptionBudget, WorkloadSpec
from kubesched.framework.decision import Decision
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = ("a", "b", "c", "d")
APPS = ("web", "db")


@st.composite
def placed(draw: st.DrawFn) -> list[PodBuilder]:
    """Pods on nodes that are full or nearly so. No two started at the same time, so no two are alike."""
    count = draw(st.integers(1, 14))
    return [
        make_pod(f"p{i}")
        .requests(cpu=draw(st.sampled_from(["0", "500m", "1", "2", "3"])), memory=draw(st.sampled_from(["0", "3Gi"])))
        .priority(draw(st.integers(0, 4)))
        .label(app=draw(st.sampled_from(APPS)))
        .started(f"2026-01-01T00:{draw(st.integers(0, 3)):02}:{i:02}Z")
        .on(draw(st.sampled_from(NODES)))
        for i in range(count)
    ]


@st.composite
def budgets(draw: st.DrawFn) -> list[PodDisruptionBudget]:
    return [
        PodDisruptionBudget(
            metadata=ObjectMeta(name=app, namespace="default"),
            spec=WorkloadSpec(selector=LabelSelector(match_labels={"app": app})),
            status=BudgetStatus(disruptions_allowed=draw(st.integers(0, 2))),
        )
        for app in APPS
        if draw(st.booleans())
    ]


def outcome(decision: Decision) -> tuple[str, str | None, list[str]]:
    found = decision.post_filter
    if found is None:
        return decision.node, None, []
    return decision.node, found.nominated, [victim.pod.name for victim in found.victims]


@settings(max_examples=150, deadline=None)
@given(
    pods=placed(),
    guards=budgets(),
    promised=st.none() | st.sampled_from(NODES),
    cpu=st.sampled_from(["1", "2", "4"]),
    priority=st.integers(1, 5),
)
def test_how_nodes_are_worked_on_makes_no_difference(
    pods: list[PodBuilder], guards: list[PodDisruptionBudget], promised: str | None, cpu: str, priority: int
) -> None:
    state = make_cluster(*(make_node(name).capacity(pods=4) for name in NODES), *guards, *pods)
    if promised is not None:
        state.nominated.add(make_pod("promised").requests(cpu="1").priority(3).build(), promised)
    engine = make_engine(state)
    urgent = make_pod("urgent").requests(cpu=cpu, memory="4Gi").priority(priority)
    at_once, one_by_one = engine.decide(urgent.build()), engine.decide(urgent.host_port(9999).build())
    assert outcome(at_once) == outcome(one_by_one)
    assert at_once.message == one_by_one.message

"""Headroom is capacity: what the page says without placing pods is what `kubesched capacity` counts by placing them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.applied_remedies import as_json, cluster_of
from tests.device_builders import device, make_class, make_slice
from tests.unit.ask.test_remedies_property import HOST, ZONE, nodes, wishes

from kubesched.api.affinity import TopologySpreadConstraint
from kubesched.api.meta import KubeObject, LabelSelector
from kubesched.ask.headroom import headroom, headroom_on, one_more
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import capacity
from kubesched.testing import PodBuilder, make_pod

GPU = "example.com/gpu"
EXAMPLE = "default/web"


@st.composite
def workloads(draw: st.DrawFn, name: str) -> PodBuilder:
    """A pod of a workload: with constraints of any kind, most of them on pods like itself."""
    pod = draw(wishes(make_pod(name))).owned_by("ReplicaSet", "web")
    if not draw(st.integers(0, 2)):
        pod = pod.label(app="x").pod_anti_affinity(draw(st.sampled_from((ZONE, HOST, "pool"))), app="x")
    for key in draw(st.sampled_from(((), (), (ZONE,), (HOST,), ("pool",), (ZONE, HOST), (HOST, "pool")))):
        constraint = TopologySpreadConstraint(
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            max_skew=draw(st.integers(1, 3)),
            min_domains=draw(st.sampled_from((None, 2, 3))),
            node_taints_policy=draw(st.sampled_from((None, "Honor"))),
            label_selector=LabelSelector(match_labels={"app": draw(st.sampled_from(("x", "y")))}),
        )
        pod = pod.spread_constraint(constraint)
    if not draw(st.integers(0, 5)):
        pod = pod.requests({GPU: draw(st.integers(1, 2))})
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> list[KubeObject]:
    """Up to seven nodes, some with devices, pods of the workload and others on them."""
    count = draw(st.integers(1, 7))
    there = [draw(nodes(i)) for i in range(count)]
    slices = [make_slice(f"n{i}", device("g0"), device("g1")) for i in range(count) if draw(st.booleans())]
    names = ["web", *(f"web-{i}" for i in range(draw(st.integers(0, 4))))]
    placed = [draw(workloads(name)).on(f"n{draw(st.integers(0, count - 1))}").build() for name in names]
    return [*(node.build() for node in there), make_class("gpu", resource=GPU), *slices, *placed]


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(clusters())
def test_headroom_is_what_capacity_counts(objects: list[KubeObject]) -> None:
    known = as_json(objects)
    cluster = cluster_of(known)
    pod = cluster.pods[EXAMPLE]
    found = headroom(cluster, pod)
    counted = capacity(cluster_of(known), one_more(pod), most=1000)
    assert found.is_exact
    assert found.more == counted.fit
    assert (found.nodes > 0) == (found.more > 0)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_headroom_of_a_node_ends_with_the_first_copy_that_it_refuses(objects: list[KubeObject]) -> None:
    cluster = cluster_of(as_json(objects))
    pod = cluster.pods[EXAMPLE]
    for name in cluster.state.nodes.row_of:
        found = headroom_on(cluster, pod, name)
        if found.is_exact:
            assert found.more == _placed_on(cluster_of(as_json(objects)), pod.key, name)


def _placed_on(cluster: ClusterModel, key: str, node: str) -> int:
    """Copies are put onto the node for as long as the engine thinks that it fits."""
    model, count = one_more(cluster.pods[key]), 0
    while True:
        copy = replace(model, metadata=replace(model.metadata, name=f"copy-{count}", uid=f"copy-{count}"))
        outcome = cluster.engine.decide(copy, explain=True).trace.filter_outcome
        row = cluster.state.nodes.row_of[node]
        if outcome is None or not outcome.feasible[row]:
            return count
        cluster.state.assume(copy, node)
        count += 1

"""Plans for the page: the map before, after each wave and in the end; the cluster stays as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.ui.observing import service_of, still

from kubesched.planning.plan import PlanOutcome
from kubesched.serve.plans import PlanQuestion, plan_now
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod
from kubesched.ui.model.plan import PlanView, plan_view
from kubesched.ui.views import PageViews

pytest.importorskip("highspy", reason="plans need HiGHS")

CLUSTER: tuple[NodeBuilder | PodBuilder, ...] = (
    *(make_node(f"node-{i}").zone("ab"[i % 2]).capacity(cpu="4") for i in range(3)),
    make_pod("p").requests(cpu="1").owned_by("ReplicaSet", "r").on("node-0"),
    make_pod("q").requests(cpu="2").owned_by("ReplicaSet", "r").on("node-1"),
)


def asked(views: PageViews, **question: Any) -> PlanView:
    look = lambda plan, cluster: plan_view(plan, cluster, "topology.kubernetes.io/zone")  # noqa: E731
    return asyncio.run(plan_now(PlanQuestion(**question), service_of(views), look))


def test_waves_lead_from_the_map_as_it_is_to_the_end() -> None:
    views = still(*CLUSTER)
    version = views.map.version
    view = asked(views, goal="free", nodes=2)
    assert view.plan.outcome is PlanOutcome.FOUND
    assert len(view.waves) == view.plan.waves == 1
    assert view.before.version < view.waves[0].version == view.after.version
    touched = {view.before.names[row] for row in view.waves[0].rows}
    assert touched == {node.name for node in view.plan.nodes} | {move.to_node for move in view.plan.moves}
    assert view.before.columns.pods != view.after.columns.pods
    assert views.map.version == version


def test_pods_that_are_placed_are_the_last_wave() -> None:
    view = asked(still(*CLUSTER, make_pod("waits").requests(cpu="4")), goal="fit")
    assert [each.node for each in view.plan.placements] == ["node-2"]
    assert len(view.waves) == view.plan.waves + 1


def test_plan_that_does_nothing_has_no_waves() -> None:
    view = asked(still(*CLUSTER), goal="queue")
    assert view.waves == ()
    assert view.before.columns == view.after.columns

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import make_cluster, make_engine
from tests.reading import nominated, victims

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.pod import PodCondition
from kubesched.api.workloads import BudgetSpec, BudgetStatus, PodDisruptionBudget
from kubesched.framework.decision import Decision
from kubesched.framework.filters import FilterRunner
from kubesched.plugins.default_preemption import costs
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, PodBuilder, make_node, make_pod

URGENT = make_pod("urgent").requests(cpu="4").priority(100)
LOWEST = -(2**31)
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def small(
    name: str, node: str, *, priority: int = 0, cpu: str = "2", started: str = "2026-01-01T00:00:00Z"
) -> PodBuilder:
    """A pod of half a node."""
    return make_pod(name).requests(cpu="2").priority(priority).started(started).on(node)


def budget(app: str, *, allowed: int, disrupted: dict[str, str] | None = None) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=BudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=BudgetStatus(disruptions_allowed=allowed, disrupted_pods=disrupted or {}),
    )


def decide(state: ClusterState, pod: PodBuilder = URGENT) -> Decision:
    return make_engine(state).decide(pod.build())


def on_two_nodes(*pods: PodBuilder | PodDisruptionBudget) -> Decision:
    """The urgent pod needs one of two nodes for itself; of equal ones it would take `a`."""
    return decide(make_cluster(make_node("a"), make_node("b"), *pods))


# -- who has to go ----------------------------------------------------------------------------------------------------


def test_no_more_pods_are_asked_to_leave_than_necessary_and_the_least_important_ones() -> None:
    pods = [small("low", "n1", priority=1), small("high", "n1", priority=9)]
    decision = decide(make_cluster(make_node("n1"), *pods), URGENT.requests(cpu="2"))
    assert (nominated(decision), victims(decision)) == ("n1", {"low"})
    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_of_equally_important_pods_those_that_started_first_stay() -> None:
    old, young = small("old", "n1", started="2025-01-01T00:00:00Z"), small("young", "n1")
    assert victims(decide(make_cluster(make_node("n1"), young, old), URGENT.requests(cpu="2"))) == {"young"}


@pytest.mark.parametrize("priority", [100, 101])
def test_pods_that_are_as_important_are_left_alone(priority: int) -> None:
    decision = decide(make_cluster(make_node("n1"), small("peer", "n1", priority=priority)))
    assert victims(decision) == set()
    assert "1 No preemption victims found for incoming pod" in decision.message


def test_nodes_where_taking_pods_away_would_not_help_are_no_candidates() -> None:
    tainted, small_node = make_node("tainted").taint("gpu"), make_node("tiny").capacity(cpu="3")
    decision = decide(make_cluster(tainted, small_node, small("a", "tainted"), small("b", "tiny")))
    assert nominated(decision) == ""
    assert "2 Preemption is not helpful for scheduling" in decision.message


def test_pods_that_keep_the_incoming_one_away_are_victims_too() -> None:
    rival = make_pod("rival").label(app="db").on("n1")
    pod = make_pod("p").priority(10).pod_anti_affinity(HOSTNAME, app="db")
    assert victims(decide(make_cluster(make_node("n1"), rival, small("other", "n1")), pod)) == {"rival"}


def test_a_port_may_be_taken_over() -> None:
    state = make_cluster(make_node("n1"), make_pod("holder").host_port(80).on("n1"), small("other", "n1"))
    assert victims(decide(state, make_pod("p").priority(10).host_port(80))) == {"holder"}


# -- on which node ----------------------------------------------------------------------------------------------------


def test_first_the_node_with_fewest_broken_budgets() -> None:
    guarded = small("guarded", "a", priority=1).label(app="db")
    assert nominated(on_two_nodes(budget("db", allowed=0), guarded, small("free", "b", priority=50))) == "b"


def test_then_the_one_whose_most_important_victim_is_least_important() -> None:
    two = small("b1", "b", priority=3), small("b2", "b", priority=3)
    assert nominated(on_two_nodes(small("a1", "a", priority=5), *two)) == "b"


def test_then_the_one_whose_victims_are_least_important_together() -> None:
    a = small("a1", "a", priority=3), small("a2", "a", priority=3)
    b = small("b1", "b", priority=3), small("b2", "b", priority=1)
    assert nominated(on_two_nodes(*a, *b)) == "b"


def test_then_the_one_with_fewest_victims() -> None:
    a = small("a1", "a", priority=3), small("a2", "a", priority=LOWEST)
    assert nominated(on_two_nodes(*a, small("b1", "b", priority=3))) == "b"


def test_then_the_one_whose_most_important_victims_started_last() -> None:
    a = small("a1", "a", started="2025-01-01T00:00:00Z")
    assert nominated(on_two_nodes(a, small("b1", "b", started="2025-06-01T00:00:00Z"))) == "b"


def test_a_victim_that_has_not_started_loses_least_work() -> None:
    assert nominated(on_two_nodes(small("a1", "a"), small("b1", "b", started=""))) == "b"


def test_between_nodes_alike_in_all_this_the_smallest_name_decides() -> None:
    assert nominated(on_two_nodes(small("b1", "b"), small("a1", "a"))) == "a"


# -- budgets ----------------------------------------------------------------------------------------------------------


def test_guarded_pods_are_the_first_to_be_spared() -> None:
    guarded = small("guarded", "n1", priority=1).label(app="db")
    state = make_cluster(make_node("n1"), budget("db", allowed=0), guarded, small("free", "n1", priority=9))
    assert victims(decide(state, URGENT.requests(cpu="2"))) == {"free"}


def test_a_budget_is_used_up_by_the_victims_one_by_one() -> None:
    a = [small(f"a{i}", "a").label(app="db") for i in range(2)]
    b = small("b1", "b", priority=50), small("b2", "b", priority=50)
    assert nominated(on_two_nodes(budget("db", allowed=1), *a, *b)) == "b"
    assert nominated(on_two_nodes(budget("db", allowed=2), *a, *b)) == "a"


def test_a_pod_whose_disruption_is_counted_already_does_not_use_the_budget_again() -> None:
    guarded = small("leaving", "a").label(app="db")
    counted = budget("db", allowed=0, disrupted={"leaving": "2026-01-01T00:00:00Z"})
    assert nominated(on_two_nodes(counted, guarded, small("b1", "b", priority=50))) == "a"


def test_budgets_of_other_namespaces_guard_nobody_here() -> None:
    guard = PodDisruptionBudget(metadata=ObjectMeta(name="x", namespace="other"), spec=budget("db", allowed=0).spec)
    guarded = small("a1", "a").label(app="db")
    assert nominated(on_two_nodes(guard, guarded, small("b1", "b", priority=50))) == "a"


# -- who may preempt --------------------------------------------------------------------------------------------------


def test_a_pod_that_never_preempts_says_so() -> None:
    decision = decide(make_cluster(make_node("n1"), small("low", "n1")), URGENT.never_preempting())
    assert victims(decision) == set()
    assert decision.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_while_victims_of_an_earlier_preemption_are_leaving_no_others_are_chosen() -> None:
    leaving = small("leaving", "n1").terminating().status(conditions=(PREEMPTED,))
    decision = decide(make_cluster(make_node("n1"), leaving), URGENT.nominated("n1"))
    assert victims(decision) == set()
    assert decision.message.endswith("not eligible due to a terminating pod on the nominated node.")


def test_pods_that_leave_for_other_reasons_do_not_hold_preemption_up() -> None:
    leaving = small("leaving", "n1").terminating()
    assert victims(decide(make_cluster(make_node("n1"), leaving), URGENT.nominated("n1"))) == {"leaving"}


def test_room_promised_to_more_important_pods_is_not_given_away_twice() -> None:
    state = make_cluster(make_node("a"), make_node("b"), small("a1", "a"), small("b1", "b", priority=50))
    state.nominated.add(make_pod("promised").requests(cpu="4").priority(200).build(), "a")
    assert nominated(decide(state)) == "b"


def test_looking_for_victims_changes_nothing() -> None:
    state = make_cluster(make_node("a"), make_node("b"), small("a1", "a"), small("b1", "b"))
    engine = make_engine(state)
    first, second = engine.decide(URGENT.build()), engine.decide(URGENT.build())
    assert (nominated(first), victims(first)) == (nominated(second), victims(second))
    assert state.nodes.pod_count.sum() == 2


# -- many preemptors --------------------------------------------------------------------------------------------------


@pytest.fixture
def rows_worked_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each dry run took pods out of."""
    counts: list[int] = []

    def work_out(cycle: Any, filters: Any, budgets: Any, ahead: Any, rows: Any) -> Any:
        counts.append(len(rows))
        return original(cycle, filters, budgets, ahead, rows)

    original = costs._work_out
    monkeypatch.setattr(costs, "_work_out", work_out)
    return counts


def test_what_one_preemptor_found_out_serves_the_next_where_nothing_changed(rows_worked_on: list[int]) -> None:
    names = [f"n{i:02}" for i in range(20)]
    state = make_cluster(*map(make_node, names), *(small(f"on-{name}", name) for name in names))
    engine, found = make_engine(state), []
    for i in range(5):
        vip = make_pod(f"vip-{i}").requests(cpu="4").priority(10).build()
        found.append(nominated(engine.decide(vip)) or "")
        state.nominated.add(vip, found[-1])
    assert found == names[:5]
    assert rows_worked_on == [20, 1, 1, 1, 1]


def test_budget_that_changes_counts_at_once(rows_worked_on: list[int]) -> None:
    state = make_cluster(make_node("a"), make_node("b"), small("a1", "a").label(app="db"), small("b1", "b"))
    engine, vip = make_engine(state), make_pod("vip").requests(cpu="4").priority(10).build()
    assert nominated(engine.decide(vip)) == "a"
    state.apply(budget("db", allowed=0))
    assert nominated(engine.decide(vip)) == "b"
    assert rows_worked_on == [2, 2]


def test_nominated_pod_is_in_the_way_of_others_like_it_but_not_of_itself() -> None:
    state = make_cluster(make_node("n1"), small("lesser", "n1"))
    engine = make_engine(state)
    first, second = (make_pod(name).requests(cpu="4").priority(10).build() for name in ("first", "second"))
    state.nominated.add(first, "n1")
    for _ in range(2):
        assert nominated(engine.decide(second)) == ""
        assert nominated(engine.decide(first)) == "n1"


def test_nominated_pods_are_looked_at_one_by_one_only_where_a_filter_depends_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"n{i:02}" for i in range(20)]
    state = make_cluster(*map(make_node, names))
    for i, name in enumerate(names):
        promised = make_pod(f"promised-{i}").requests(cpu="1").priority(10)
        state.nominated.add((promised.host_port(80) if i < 3 else promised).build(), name)
    looked_at: list[int] = []

    def check(self: FilterRunner, cycle: Any, world: Any) -> Any:
        looked_at.append(world.row(0))
        return original(self, cycle, world)

    original = FilterRunner.check
    monkeypatch.setattr(FilterRunner, "check", check)
    assert make_engine(state).decide(make_pod("p").host_port(80).build()).node == "n03"
    assert sorted(set(looked_at)) == [0, 1, 2]

"""How long a decision may take, by a clock that a test sets."""

from __future__ import annotations

import math

import pytest
from tests.adversary import TRAITS, HostilePod, Trait
from tests.builders import make_cluster

from kubesched import config
from kubesched.framework.budget import Budget, BudgetExceededError, Expense, TurnOverError, counting_looks
from kubesched.framework.decision import Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.plugin import PluginContext
from kubesched.framework.profile import Profile
from kubesched.plugins.registry import in_tree
from kubesched.testing import make_node

DEVICES = Expense("DynamicResources", "devices")
TERMS = Expense("InterPodAffinity", "affinity terms")


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_counts_from_the_first_look() -> None:
    clock = Clock()
    budget = Budget(clock, turn=1.0)
    budget.begin(0.0)
    clock.now += 50
    budget.end_turn(DEVICES)
    clock.now += 0.9
    budget.end_turn(DEVICES)
    clock.now += 0.2
    with pytest.raises(TurnOverError) as caught:
        budget.end_turn(DEVICES)
    assert caught.value.expense == DEVICES
    assert budget.spent == pytest.approx(1.1)


@pytest.mark.parametrize("trait", [t for t in TRAITS if t.name in ("soft spread", "preferred nodes", "anti-affinity")])
def test_a_pod_that_makes_a_plugin_walk_too_long_is_given_up_with_what_is_so_long(trait: Trait) -> None:
    clock = Clock()

    def ticking() -> float:
        clock.now += 0.5
        return clock.now

    topologies = {f"example.com/topology-{i}": "a" for i in range(300)}
    cluster = make_cluster(make_node("n1").label(topologies), make_node("n2").label(topologies))
    profiles = [Profile(profile, in_tree(), PluginContext()) for profile in config.default().profiles]
    engine = Engine(cluster, profiles, draw=lambda among: 0, budget=Budget(ticking, limit=1.0))
    decision = engine.decide(HostilePod((trait,)).build(300, "hostile"))
    assert decision.outcome is Outcome.ERROR
    assert "gave up after 1s" in decision.message


def test_a_decision_that_must_be_made_in_one_turn_is_not_interrupted() -> None:
    clock = Clock()
    budget = Budget(clock, turn=1.0)
    budget.begin(None)
    budget.end_turn(DEVICES)
    clock.now += 50
    budget.end_turn(DEVICES)
    assert not budget.is_first_turn


def test_the_limit_of_a_plugin_is_on_all_turns_together() -> None:
    clock = Clock()
    budget = Budget(clock, turn=1.0)
    budget.begin(9.0)
    assert not budget.is_exceeded(10.0, DEVICES)
    clock.now += 2
    assert budget.is_exceeded(10.0, DEVICES)
    assert budget.ran_out == DEVICES


def test_work_that_cannot_go_on_later_is_given_up_by_how_long_this_turn_takes() -> None:
    clock = Clock()
    budget = Budget(clock, limit=1.0)
    budget.begin(9.0)
    budget.check(TERMS)
    clock.now += 1.5
    with pytest.raises(BudgetExceededError, match="gave up after 1s: InterPodAffinity takes too long for"):
        budget.check(TERMS)
    assert budget.ran_out == TERMS


def test_the_next_decision_begins_anew() -> None:
    clock = Clock()
    budget = Budget(clock, limit=1.0)
    budget.begin(0.0)
    budget.check(TERMS)
    clock.now += 2
    with pytest.raises(BudgetExceededError):
        budget.check(TERMS)
    budget.begin(0.0)
    budget.check(TERMS)
    assert budget.ran_out is None


def test_a_decision_that_is_known_to_take_too_long_is_given_up_at_the_first_look() -> None:
    budget = Budget(lambda: 0.0, limit=1.0)
    budget.begin(math.inf)
    assert budget.is_exceeded(10.0, DEVICES)
    with pytest.raises(BudgetExceededError):
        budget.check(TERMS)


def test_in_simulations_looks_count_and_not_the_time_between_them() -> None:
    budget = counting_looks()
    budget.begin(0.0)
    looks = 0
    while not budget.is_exceeded(1.0, DEVICES):
        budget.end_turn(DEVICES)
        budget.check(TERMS)
        looks += 1
    assert 200 < looks < 1000

from __future__ import annotations

import numpy as np
from tests.builders import Json, make_cluster, make_engine, profile_of

from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.testing import make_node, make_pod


def names_scored(decision: Decision) -> list[str]:
    scores = decision.trace.scores
    assert scores is not None
    return [scores.nodes.node(i).name for i in range(len(scores.nodes))]


def engine_with(nodes: int, *, percentage: int, full: int = 0, own: int | None = None) -> Engine:
    """So many nodes, the first ones full; `percentage` of all profiles, `own` of this one."""
    config: Json = profile_of("NodeResourcesFit")
    config["percentageOfNodesToScore"] = percentage
    if own is not None:
        config["profiles"][0]["percentageOfNodesToScore"] = own
    built = (make_node(f"n{i:03}").capacity(cpu="0" if i < full else "4") for i in range(nodes))
    return make_engine(make_cluster(*built), config=config)


POD = make_pod("p").requests(cpu="1").build()


def test_every_node_is_looked_at_by_default() -> None:
    decision = engine_with(1000, percentage=0).decide(POD)
    assert (decision.evaluated, decision.feasible) == (1000, 1000)


def test_a_percentage_stops_the_search_when_enough_nodes_fit() -> None:
    decision = engine_with(1000, percentage=20).decide(POD)
    assert (decision.evaluated, decision.feasible) == (200, 200)
    assert names_scored(decision) == [f"n{i:03}" for i in range(200)]


def test_nodes_that_do_not_fit_are_evaluated_on_the_way() -> None:
    decision = engine_with(1000, percentage=20, full=30).decide(POD)
    assert (decision.evaluated, decision.feasible) == (230, 200)


def test_at_least_a_hundred_nodes_are_wanted_whatever_the_percentage() -> None:
    assert engine_with(1000, percentage=1).decide(POD).feasible == 100
    assert engine_with(99, percentage=1).decide(POD).feasible == 99


def test_the_profile_has_the_last_word_on_the_percentage() -> None:
    assert engine_with(1000, percentage=20, own=50).decide(POD).feasible == 500
    assert engine_with(1000, percentage=20, own=0).decide(POD).feasible == 1000


def test_the_next_search_goes_on_where_the_last_one_stopped() -> None:
    engine = engine_with(500, percentage=40)
    first, second, third = (names_scored(engine.decide(POD)) for _ in range(3))
    assert first == [f"n{i:03}" for i in range(200)]
    assert second == [f"n{i:03}" for i in range(200, 400)]
    assert sorted(third) == [f"n{i:03}" for i in (*range(100), *range(400, 500))]


def test_with_nothing_to_compare_the_first_node_that_fits_is_enough() -> None:
    config = profile_of("NodeResourcesFit", score={"disabled": [{"name": "*"}]})
    engine = make_engine(make_cluster(*(make_node(f"n{i}") for i in range(9))), config=config)
    assert [engine.decide(POD).node for _ in range(3)] == ["n0", "n1", "n2"]


def test_what_is_found_does_not_depend_on_which_rows_nodes_have() -> None:
    old = [make_node(f"old{i}") for i in range(40)]
    state = make_cluster(*old)
    for node in old:
        state.delete(node.build())
    for i in range(200):
        state.apply(make_node(f"n{i:03}").build())
    config = {**profile_of("NodeResourcesFit"), "percentageOfNodesToScore": 50}
    assert sorted(names_scored(make_engine(state, config=config).decide(POD))) == [f"n{i:03}" for i in range(100)]
    assert np.count_nonzero(state.nodes.live) == 200


def test_better_nodes_outside_the_sample_are_not_chosen_though_their_scores_are_kept() -> None:
    config: Json = profile_of("NodeResourcesFit")
    config["percentageOfNodesToScore"] = 40
    nodes = (make_node(f"n{i:03}").capacity(cpu="400" if i == 499 else "4") for i in range(500))
    engine = make_engine(make_cluster(*nodes), config=config)
    assert [engine.decide(POD).node for _ in range(3)] == ["n000", "n200", "n499"]

"""Choosing among scores: totals of every size, and draws among very many equals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_cluster, make_engine, profile_of
from tests.reading import totals

from kubesched.framework import scores
from kubesched.framework.nodes import FeasibleNodes
from kubesched.framework.scores import Best
from kubesched.testing import make_node, make_pod

PLUGINS = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")


@pytest.mark.parametrize("weight", [1, 3, 100, 1000, 100_000])
def test_whatever_the_weights_the_score_is_that_of_the_explanation(weight: int) -> None:
    """Totals are kept in as few bits as all scores of the profile may need."""
    config = profile_of(*PLUGINS)
    multi_point = config["profiles"][0]["plugins"]["multiPoint"]
    for plugin in multi_point["enabled"][1:-1]:
        plugin["weight"] = weight
    state = make_cluster(*(make_node(f"n{i}").capacity(cpu=str(2 + i), memory="8Gi") for i in range(5)))
    engine = make_engine(state, config=config)
    for i in range(3):
        pod = make_pod(f"p{i}").requests(cpu="1", memory="1Gi").build()
        explained = totals(engine.decide(pod, explain=True))
        decision = engine.decide(pod)
        assert decision.score == max(explained.values()) == explained[decision.node]
        assert decision.score >= 100 * weight
        state.assume(pod, decision.node)


@given(best=st.lists(st.booleans(), min_size=1, max_size=200).filter(any), data=st.data())
def test_the_drawn_one_of_equals_is_found_in_a_column_of_any_length(best: list[bool], data: st.DataObject) -> None:
    is_best = np.array(best)
    among = int(is_best.sum())
    drawn = data.draw(st.integers(0, among - 1))
    nodes = FeasibleNodes(make_cluster(), np.ones(len(best), dtype=np.bool_), len(best))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scores, "_SHORT", 4)
        assert Best(1, among, is_best).row(drawn, nodes) == np.flatnonzero(is_best)[drawn]

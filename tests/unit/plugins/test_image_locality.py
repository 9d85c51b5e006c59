from __future__ import annotations

from tests.builders import make_cluster, make_engine
from tests.reading import scores_of

from kubesched.framework.decision import Decision
from kubesched.state.cluster import ClusterState
from kubesched.testing import PodBuilder, make_node, make_pod

MIB = 1 << 20


def decide(state: ClusterState, pod: PodBuilder) -> Decision:
    return make_engine(state).decide(pod.build(), explain=True)


def test_large_images_that_are_present_count_and_small_ones_do_not() -> None:
    nodes = make_node("large").image("big:1", size=700 * MIB), make_node("small").image("tiny:1", size=10 * MIB)
    state = make_cluster(*nodes, make_node("none"))
    assert scores_of(decide(state, make_pod("p").image("big:1")), "ImageLocality") == {
        "large": 21,
        "small": 0,
        "none": 0,
    }
    assert set(scores_of(decide(state, make_pod("p").image("tiny:1")), "ImageLocality").values()) == {0}


def test_an_image_counts_more_the_more_nodes_have_it() -> None:
    def score(holders: int) -> int:
        nodes = [make_node(f"n{i}").image("big:1", size=700 * MIB) for i in range(holders)]
        empty = [make_node(f"e{i}") for i in range(4 - holders)]
        return scores_of(decide(make_cluster(*nodes, *empty), make_pod("p").image("big:1")), "ImageLocality")["n0"]

    assert score(1) < score(2) < score(3)


def test_an_image_without_a_tag_is_the_latest() -> None:
    state = make_cluster(make_node("n1").image("registry:5000/big:latest", size=900 * MIB), make_node("n2"))
    scores = scores_of(decide(state, make_pod("p").image("registry:5000/big")), "ImageLocality")
    assert scores["n1"] > scores["n2"] == 0

from __future__ import annotations

from tests.builders import make_cluster, make_engine, profile_of
from tests.reading import rejections

from kubesched.testing import make_node, make_pod


def test_a_pod_that_names_its_node_goes_there_or_nowhere() -> None:
    state = make_cluster(make_node("n1"), make_node("n2"))
    engine = make_engine(state, config=profile_of("NodeName"))
    assert engine.decide(make_pod("p").on("n2").build(), explain=True).node == "n2"
    nowhere = engine.decide(make_pod("p").on("n3").build(), explain=True)
    assert rejections(nowhere) == dict.fromkeys(["n1", "n2"], "node(s) didn't match the requested node name")


def test_a_name_follows_its_node_to_another_row() -> None:
    state = make_cluster(make_node("n1"), make_node("n2"))
    engine = make_engine(state, config=profile_of("NodeName"))
    pod = make_pod("p").on("n1").build()
    assert engine.decide(pod, explain=True).node == "n1"
    state.delete(make_node("n1").build())
    state.apply(make_node("n3").build())
    assert not engine.decide(pod, explain=True).node
    state.apply(make_node("n1").build())
    assert engine.decide(pod, explain=True).node == "n1"


def test_pods_that_differ_in_nothing_but_the_node_they_name_go_to_different_nodes() -> None:
    engine = make_engine(make_cluster(make_node("n1"), make_node("n2")), config=profile_of("NodeName"))
    assert [engine.decide(make_pod("p").on(name).build()).node for name in ("n1", "n1", "n2")] == ["n1", "n1", "n2"]

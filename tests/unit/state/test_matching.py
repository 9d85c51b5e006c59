from __future__ import annotations

from tests.builders import make_cluster

from kubesched.api.selectors import EVERYTHING, selector_from_labels
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, make_node, make_pod

WEB = selector_from_labels({"app": "web"})
OURS = frozenset(("default",))

web = make_pod("web").label(app="web")


def counted(
    state: ClusterState, namespaces: frozenset[str] | None = None, *, with_terminating: bool = True
) -> dict[str, int]:
    """How many pods labelled app=web are on each node."""
    counts = state.matches.counter(namespaces, WEB, with_terminating=with_terminating).counts
    return {state.nodes.names[row]: int(counts[row]) for row in counts.nonzero()[0]}


def test_pods_placed_before_and_after_the_question_count_alike() -> None:
    state = make_cluster(make_node("n1"), make_node("n2"), web.on("n1"))
    assert counted(state) == {"n1": 1}
    state.apply(make_pod("web-2").label(app="web").on("n2").build())
    state.apply(make_pod("db").label(app="db").on("n2").build())
    assert counted(state) == {"n1": 1, "n2": 1}


def test_a_question_may_be_about_some_namespaces_or_all() -> None:
    elsewhere = make_pod("web", namespace="other", uid="2").label(app="web")
    state = make_cluster(make_node("n1"), web.on("n1"), elsewhere.on("n1"))
    assert counted(state, OURS) == {"n1": 1}
    assert counted(state, None) == {"n1": 2}
    assert counted(state, frozenset()) == {}


def test_terminating_pods_count_only_where_they_are_asked_for() -> None:
    state = make_cluster(make_node("n1"), web.on("n1"))
    assert counted(state, with_terminating=False) == {"n1": 1}
    state.apply(web.on("n1").terminating().build())
    assert counted(state, with_terminating=False) == {}
    assert counted(state, with_terminating=True) == {"n1": 1}


def test_a_relabelled_pod_moves_to_the_questions_that_its_new_labels_match() -> None:
    state = make_cluster(make_node("n1"), web.on("n1"))
    assert counted(state) == {"n1": 1}
    state.apply(web.label(app="db").on("n1").build())
    assert counted(state) == {}


def test_pods_on_a_ghost_node_still_count_there() -> None:
    node = make_node("n1").build()
    state = make_cluster(node, web.on("n1"))
    state.delete(node)
    assert counted(state) == {"n1": 1}


def test_two_kinds_of_pods_with_the_same_labels_are_one_to_a_selector_in_whatever_order_they_go() -> None:
    small, large = make_pod("small").label(app="web"), make_pod("large").label(app="web").requests(cpu="1")
    state = make_cluster(make_node("n1"))
    # A pod that waits keeps the facts of its kind alive when the last placed pod of the kind is gone.
    waiting = state.facts(small.build())
    state.apply(small.on("n1").build())
    state.apply(large.on("n1").build())
    state.delete(small.build())
    state.delete(large.build())
    assert counted(state) == {}
    state.apply(small.on("n1").build())
    assert state.facts(small.build()) is waiting
    assert state.matches.counter(None, EVERYTHING).counts.sum() == counted(state)["n1"] == 1
    state.delete(small.build())
    assert counted(state) == {}


def test_after_too_many_different_questions_those_still_asked_are_answered_rightly() -> None:
    state = make_cluster(make_node("n1"), web.on("n1"))
    assert counted(state) == {"n1": 1}
    for i in range(5000):
        state.matches.counter(OURS, selector_from_labels({"app": str(i)}))
    state.apply(make_pod("web-2").label(app="web").on("n1").build())
    assert counted(state) == {"n1": 2}


def test_terms_are_counted_where_their_carriers_are_until_the_last_one_goes() -> None:
    lonely = make_pod("lonely").pod_anti_affinity(HOSTNAME, app="web")
    state = make_cluster(make_node("n1"), lonely.on("n1"))
    [carried] = state.matches.carried
    assert [(term.kind, term.topology_key) for term in carried.terms] == [("required-anti-affinity", HOSTNAME)]
    assert carried.counts(state.nodes.size)[state.nodes.row_of["n1"]] == 1
    state.delete(lonely.build())
    assert list(state.matches.carried) == []

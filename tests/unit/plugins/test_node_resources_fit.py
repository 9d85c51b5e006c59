from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Json, make_cluster, make_engine, profile_of
from tests.reading import rejections, scores_of, statuses

from kubesched.api.pod import ResourceRequirements
from kubesched.config.args import ScoringStrategy
from kubesched.config.features import Features
from kubesched.framework.decision import Decision
from kubesched.framework.status import Code
from kubesched.plugins.node_resources.strategies import strategy
from kubesched.testing import PodBuilder, make_node, make_pod

GPU = "nvidia.com/gpu"


def with_args(**args: object) -> Json:
    return profile_of("NodeResourcesFit", args={"NodeResourcesFit": args})


def decide(pod: PodBuilder, *others: PodBuilder, config: Json | None = None) -> Decision:
    """On an empty node and one where the others run."""
    state = make_cluster(make_node("empty"), make_node("used"), *(other.on("used") for other in others))
    return make_engine(state, config=config).decide(pod.build(), explain=True)


def test_every_shortage_of_a_node_is_named_in_a_fixed_order() -> None:
    pod = make_pod("p").requests({GPU: 1, "example.com/fpga": 1, "memory": "9Gi", "cpu": "5"})
    assert rejections(decide(pod))["empty"] == (
        "Insufficient cpu, Insufficient memory, Insufficient example.com/fpga, Insufficient nvidia.com/gpu"
    )


def test_preemption_cannot_help_where_one_request_is_more_than_the_node_has() -> None:
    busy = make_pod("busy").requests(cpu="3", memory="7Gi")
    fits_if_empty = decide(make_pod("p").requests(cpu="2", memory="2Gi"), busy)
    never_fits = decide(make_pod("p").requests(cpu="2", memory="9Gi"), busy)
    assert statuses(fits_if_empty)["used"].code is Code.UNSCHEDULABLE
    assert statuses(never_fits)["used"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_node_that_has_all_its_pods_takes_no_more_however_small() -> None:
    state = make_cluster(make_node("n1").capacity(pods=1), make_pod("only").on("n1"))
    decision = make_engine(state).decide(make_pod("p").build(), explain=True)
    assert statuses(decision)["n1"].reasons == ("Too many pods",)
    assert statuses(decision)["n1"].code is Code.UNSCHEDULABLE


def test_ignored_resources_are_somebody_elses_business() -> None:
    pod = make_pod("p").requests({GPU: 1})
    assert not decide(pod).node
    assert decide(pod, config=with_args(ignoredResources=[GPU])).node
    assert decide(pod, config=with_args(ignoredResourceGroups=["nvidia.com"])).node


def test_least_allocated_prefers_empty_nodes_and_most_allocated_full_ones() -> None:
    pod, other = make_pod("p").requests(cpu="1", memory="2Gi"), make_pod("other").requests(cpu="1", memory="2Gi")
    least, most = ({"type": kind, "resources": [{"name": "cpu"}]} for kind in ("LeastAllocated", "MostAllocated"))
    emptier = decide(pod, other, config=with_args(scoringStrategy=least))
    fuller = decide(pod, other, config=with_args(scoringStrategy=most))
    assert scores_of(emptier, "NodeResourcesFit") == {"empty": 75, "used": 50}
    assert scores_of(fuller, "NodeResourcesFit") == {"empty": 25, "used": 50}


def test_pods_that_request_nothing_are_scored_as_if_they_used_a_little() -> None:
    silent, honest = make_pod("p"), make_pod("p").requests(cpu="100m", memory="200Mi")
    assert scores_of(decide(silent), "NodeResourcesFit") == scores_of(decide(honest), "NodeResourcesFit")


def test_the_score_does_not_know_of_pod_level_requests_though_the_filter_does() -> None:
    """So it is in kube-scheduler, and users may have come to rely on where their pods go."""
    pod = make_pod("p").pod_level(cpu="2", memory="4Gi")
    assert set(scores_of(decide(pod), "NodeResourcesFit").values()) == {97}
    assert not decide(make_pod("p").pod_level(cpu="5")).node


def test_a_pod_that_asks_for_very_many_resources_is_judged_like_any_other() -> None:
    pod = make_pod("p").requests({f"example.com/r{i:02}": 1 for i in range(40)})
    assert rejections(decide(pod))["empty"].count("Insufficient") == 40


def test_pod_level_requests_count_for_nothing_where_the_gate_is_closed() -> None:
    heavy = make_pod("p").requests(cpu="1").pod_level(cpu="5").build()
    placed = make_pod("placed").requests(cpu="1").pod_level(cpu="4").on("n1")
    off = Features(pod_level_resources=False)
    assert not make_engine(make_cluster(make_node("n1"))).decide(heavy).node
    assert make_engine(make_cluster(make_node("n1"), features=off)).decide(heavy).node == "n1"
    small = make_pod("small").requests(cpu="2").build()
    assert not make_engine(make_cluster(make_node("n1"), placed)).decide(small).node
    assert make_engine(make_cluster(make_node("n1"), placed, features=off)).decide(small).node == "n1"


def test_a_resize_at_pod_level_counts_for_nothing_where_the_gate_is_closed() -> None:
    shrinking = make_pod("placed").pod_level(cpu="1").on("n1")
    shrinking = shrinking.status(resources=ResourceRequirements(requests={"cpu": "4"}))
    small = make_pod("small").requests(cpu="2").build()
    assert not make_engine(make_cluster(make_node("n1"), shrinking)).decide(small).node
    off = Features(pod_level_resize=False)
    assert make_engine(make_cluster(make_node("n1"), shrinking, features=off)).decide(small).node == "n1"


@given(
    amounts=st.lists(st.tuples(st.integers(1, 2**50), st.integers(0, 100), st.integers(-2, 2)), min_size=2, max_size=2),
    weights=st.tuples(st.integers(1, 100), st.integers(1, 100)),
    kind=st.sampled_from(["LeastAllocated", "MostAllocated"]),
)
def test_a_percentage_is_never_rounded_up(
    amounts: list[tuple[int, int, int]], weights: tuple[int, int], kind: str
) -> None:
    """However near it comes to the next whole number."""
    offered = [offer for offer, _, _ in amounts]
    used = [max(0, offer * percent // 100 + more) for offer, percent, more in amounts]
    used_column, offered_column = (np.array([[amount] for amount in each]) for each in (used, offered))
    score = strategy(ScoringStrategy(kind)).columns(used_column, offered_column, np.array(weights))
    parts = [max(0, offer - use) if kind == "LeastAllocated" else min(use, offer) for use, offer in zip(used, offered)]
    percents = [part * 100 // offer for part, offer in zip(parts, offered)]
    assert score.tolist() == [sum(w * p for w, p in zip(weights, percents)) // sum(weights)]

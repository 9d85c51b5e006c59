from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace
from tests.builders import make_cluster, make_engine, profile_of
from tests.reading import rejections, totals

from kubesched.api.node import NodeCondition
from kubesched.api.pod import PersistentVolumeClaimSource, Volume
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    WhatIfRunner,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from kubesched.state.columns import Int32, Int64
from kubesched.testing import make_node, make_pod, node_term

POD = make_pod("p").build()
WRONG_RACK = unschedulable("node(s) were in the wrong rack")


class RackNode(FilterPlugin, ScorePlugin):
    """Racks from 5 on are wrong, and higher is better: asked about one node at a time."""

    name = "RackNode"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return WRONG_RACK if int(node.labels.get("rack", "9")) >= 5 else None

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        return 10 * int(node.labels["rack"]) + len(node.pods)


class RackColumns(FilterPlugin, ScorePlugin):
    """The same, asked about all nodes at once."""

    name = "RackColumns"
    filter_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)
    score_reads = Reads(PodFields.SPEC, Scope.NODE)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        return self.reject(self._racks(cycle, nodes) >= 5, WRONG_RACK)

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        return 10 * self._racks(cycle, nodes) + nodes.pod_count

    def _racks(self, cycle: Cycle, nodes: Nodes) -> Int64:
        values = cycle.state.nodes.label("rack").values.values
        return np.array([*(int(value or 9) for value in values), 9])[nodes.label_ids("rack")]


class WantedNode(FilterPlugin):
    """Goes by an annotation: two pods that are alike in all else get different answers."""

    name = "WantedNode"
    filter_reads = Reads(PodFields.ANNOTATIONS, Scope.NODE_OBJECT)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        row = cycle.state.nodes.row_of[cycle.pod.metadata.annotations["wanted"]]
        return self.reject(nodes.row_ids != row, unschedulable("node(s) were not wanted"))


class Narrow(PreFilterPlugin):
    """Only two nodes are worth a look."""

    name = "Narrow"

    def pre_filter(self, cycle: Cycle) -> frozenset[str]:
        return frozenset(("n1", "n2"))


class NarrowElsewhere(PreFilterPlugin):
    name = "NarrowElsewhere"

    def pre_filter(self, cycle: Cycle) -> frozenset[str]:
        return frozenset(("n3",))


class Broken(FilterPlugin):
    """Breaks on the second node."""

    name = "Broken"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return error("the disk is on fire") if node.name == "n1" else None


class Immodest(ScorePlugin):
    name = "Immodest"

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        return 101 if node.name == "n1" else 100


class Unmoved(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Has nothing to do for any pod, and must not be asked."""

    name = "Unmoved"

    def pre_filter(self, cycle: Cycle) -> Status:
        return SKIP

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status:
        return SKIP


PLUGINS = (RackNode, RackColumns, WantedNode, Narrow, NarrowElsewhere, Broken, Immodest, Unmoved)


def decide(*plugins: str, racks: str = "1234", explain: bool = False) -> Decision:
    """What these plugins make of a pod, with a node n0, n1, ... in each of the racks."""
    state = make_cluster(*(make_node(f"n{i}").label(rack=rack) for i, rack in enumerate(racks)))
    return make_engine(state, config=profile_of(*plugins), plugins=PLUGINS).decide(POD, explain=explain)


# -- choosing ---------------------------------------------------------------------------------------------------------


def test_the_node_with_the_highest_score_is_chosen() -> None:
    decision = decide("RackNode", racks="1427")
    assert (decision.outcome, decision.node, decision.score) == (Outcome.SCHEDULED, "n1", 40)
    assert (decision.evaluated, decision.feasible) == (4, 3)


def test_equals_are_drawn_by_the_generator_and_the_draw_is_recorded() -> None:
    state = make_cluster(*(make_node(f"n{i}").label(rack=rack) for i, rack in enumerate("4144")))
    engine = make_engine(state, config=profile_of("RackNode"), plugins=PLUGINS, draw=lambda among: among - 1)
    decision = engine.decide(POD)
    assert decision.node == "n3"
    assert (decision.draw.among, decision.draw.drawn) == (3, 2)


def test_the_same_seed_makes_the_same_choices() -> None:
    def choices(seed: int) -> list[str]:
        state = make_cluster(*(make_node(f"n{i}") for i in range(20)))
        engine = make_engine(state, draw=random.Random(seed).randrange)
        return [engine.decide(POD).node for _ in range(10)]

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


def test_nothing_is_drawn_where_one_node_is_best() -> None:
    def never(among: int) -> int:
        raise AssertionError("there is no choice to make")

    state = make_cluster(make_node("n0").label(rack="1"), make_node("n1").label(rack="2"))
    engine = make_engine(state, config=profile_of("RackNode"), plugins=PLUGINS, draw=never)
    assert engine.decide(POD).node == "n1"


def test_a_single_node_that_fits_is_taken_without_a_score() -> None:
    decision = decide("RackNode", racks="178")
    assert decision.node == "n0"
    assert decision.trace.scores is None


def test_no_nodes_at_all_is_said_in_the_words_users_know() -> None:
    decision = decide("RackNode", racks="")
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == "no nodes available to schedule pods"


# -- filters ----------------------------------------------------------------------------------------------------------


def test_both_ways_of_writing_a_plugin_give_the_same_result() -> None:
    one_by_one, columns = (decide(name, racks="0142637", explain=True) for name in ("RackNode", "RackColumns"))
    assert one_by_one.node == columns.node == "n2"
    assert rejections(one_by_one) == rejections(columns) == {"n4": WRONG_RACK.message, "n6": WRONG_RACK.message}
    assert totals(one_by_one) == totals(columns) == {"n0": 0, "n1": 10, "n2": 40, "n3": 20, "n5": 30}


@pytest.mark.parametrize("name", ["RackNode", "RackColumns"])
def test_a_pod_that_fits_nowhere_is_told_how_many_nodes_said_what(name: str) -> None:
    decision = decide(name, racks="567")
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == "0/3 nodes are available: 3 node(s) were in the wrong rack."
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {name}


@pytest.mark.parametrize("name", ["RackNode", "RackColumns"])
def test_an_answer_follows_the_nodes_it_is_about(name: str) -> None:
    state = make_cluster(make_node("n0").label(rack="7"), make_node("n1").label(rack="7"))
    engine = make_engine(state, config=profile_of(name), plugins=PLUGINS)
    assert engine.decide(POD).outcome is Outcome.UNSCHEDULABLE
    state.apply(make_node("n1").label(rack="1").build())
    state.apply(make_node("n2").label(rack="1").build())
    state.apply(make_pod("other").on("n2").build())
    decision = engine.decide(POD)
    assert (decision.node, decision.score) == ("n2", 11)


@pytest.mark.parametrize(("scope", "rows"), [(Scope.NODE_OBJECT, 0), (Scope.NODE_TOTALS, 0), (Scope.NODE, 1)])
def test_a_pod_that_is_shown_anew_is_a_matter_for_those_who_look_at_pods(scope: Scope, rows: int) -> None:
    """Each is when it was bound: what is kept by totals would be worked out twice for every pod."""
    asked: list[int] = []

    class Asked(FilterPlugin):
        name = "Asked"
        filter_reads = Reads(PodFields.SPEC, scope)

        def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
            asked.append(len(nodes))
            return np.zeros(len(nodes), dtype=np.int32)

    state = make_cluster(*(make_node(f"n{number}") for number in range(20)), make_pod("a").on("n1"))
    engine = make_engine(state, config=profile_of("Asked"), plugins=[Asked])
    engine.decide(POD)
    state.apply(make_pod("a").on("n1").label(seen="again").build())
    asked.clear()
    engine.decide(POD)
    assert sum(asked) == rows


def test_a_node_that_merely_says_that_it_is_there_is_not_asked_about() -> None:
    """With thousands of nodes one of them has nearly always just said so."""
    asked: list[int] = []

    class Asked(FilterPlugin):
        name = "Asked"
        filter_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

        def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
            asked.append(len(nodes))
            return np.zeros(len(nodes), dtype=np.int32)

    state = make_cluster(*(make_node(f"n{number}") for number in range(20)))
    engine = make_engine(state, config=profile_of("Asked"), plugins=[Asked])
    engine.decide(POD)
    asked.clear()
    known = make_node("n1").build()
    newer = replace(known, metadata=replace(known.metadata, resource_version="77"))
    state.apply(newer)
    engine.decide(POD)
    assert (asked, state.nodes.node(state.nodes.row_of["n1"])) == ([], newer)
    for changed in (
        replace(newer, metadata=replace(newer.metadata, annotations={"a": "b"})),
        replace(newer, spec=replace(newer.spec, unschedulable=True)),
        replace(newer, status=replace(newer.status, conditions=(NodeCondition(type="Ready", status="False"),))),
    ):
        state.apply(newer)
        engine.decide(POD)
        asked.clear()
        state.apply(changed)
        engine.decide(POD)
        assert asked == [1]


@pytest.mark.parametrize("only_at_spec", [True, False])
def test_pods_of_the_same_spec_share_what_looks_at_nothing_else(only_at_spec: bool) -> None:
    asked: list[str] = []

    class Wanted(FilterPlugin):
        name = "Wanted"
        filter_reads = Reads(PodFields.SPEC if only_at_spec else PodFields.LABELS, Scope.NODE_OBJECT)

        def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
            wanted = cycle.pod.metadata.labels["wanted"]
            asked.append(wanted)
            return self.reject(np.array([nodes.node(i).name != wanted for i in range(len(nodes))]), WRONG_RACK)

    engine = make_engine(make_cluster(make_node("n0"), make_node("n1")), config=profile_of("Wanted"), plugins=[Wanted])
    pods = [make_pod(f"p{number}").label(wanted=f"n{number}").build() for number in (0, 1, 0)]
    claims = [PersistentVolumeClaimSource(claim_name=pod.name) for pod in pods]
    volumes = [(Volume(name="data", persistent_volume_claim=claim),) for claim in claims]
    pods = [replace(pod, spec=replace(pod.spec, volumes=its)) for pod, its in zip(pods, volumes, strict=True)]
    found = [engine.decide(pod).node for pod in pods]
    if only_at_spec:  # which is a lie, and so the answer about the first is taken for that about all
        assert (found, asked) == (["n0", "n0", "n0"], ["n0"])
    else:
        assert (found, asked) == (["n0", "n1", "n0"], ["n0", "n1"])


def test_pods_that_differ_in_what_is_declared_get_answers_of_their_own() -> None:
    state = make_cluster(make_node("n0"), make_node("n1"))
    engine = make_engine(state, config=profile_of("WantedNode"), plugins=PLUGINS)
    meta = POD.metadata
    wanting = {name: replace(POD, metadata=replace(meta, annotations={"wanted": name})) for name in ("n0", "n1")}
    assert [engine.decide(wanting[name]).node for name in ("n0", "n0", "n1", "n0")] == ["n0", "n0", "n1", "n0"]


def test_the_first_filter_to_reject_a_node_is_the_one_reported() -> None:
    state = make_cluster(make_node("n0").label(rack="7").cordoned())
    engine = make_engine(state, config=profile_of("NodeUnschedulable", "RackNode"), plugins=PLUGINS)
    assert engine.decide(POD).message == "0/1 nodes are available: 1 node(s) were unschedulable."


def test_a_plugin_that_skips_is_not_asked_again() -> None:
    assert decide("Unmoved", "RackNode", explain=True).node == "n3"


def test_a_filter_that_breaks_ends_the_attempt_with_its_error() -> None:
    decision = decide("Broken", "RackNode")
    assert decision.outcome is Outcome.ERROR
    assert decision.status is not None
    assert decision.status.code is Code.ERROR
    assert decision.message == 'running "Broken" filter plugin: the disk is on fire'


def test_a_filter_that_would_break_on_a_node_already_rejected_breaks_nothing() -> None:
    assert decide("RackNode", "Broken", racks="1712").node == "n3"


def test_a_score_out_of_range_ends_the_attempt_with_an_error() -> None:
    decision = decide("Immodest")
    assert decision.outcome is Outcome.ERROR
    words = 'applying score defaultWeights on Score plugins: plugin "Immodest" returns an invalid score 101'
    assert decision.message.startswith(words)


# -- pre-filters ------------------------------------------------------------------------------------------------------


def test_only_the_nodes_that_pre_filters_name_are_looked_at() -> None:
    decision = decide("Narrow", "RackNode")
    assert (decision.node, decision.evaluated) == ("n2", 2)


@pytest.mark.parametrize("scope", Scope)
def test_columns_are_asked_only_about_the_few_nodes_that_are_left(scope: Scope) -> None:
    asked: list[list[int]] = []

    class Noting(FilterPlugin):
        name = "Noting"
        filter_reads = Reads(PodFields.SPEC, scope)

        def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
            asked.append(nodes.row_ids.tolist())
            return self.reject(nodes.row_ids == 1, WRONG_RACK)

    class NotingAgain(Noting):
        name = "NotingAgain"

    state = make_cluster(*(make_node(f"n{i}") for i in range(4)))
    config = profile_of("Narrow", "Noting", "NotingAgain")
    engine = make_engine(state, config=config, plugins=(Narrow, Noting, NotingAgain))
    assert engine.decide(POD).node == "n2"
    assert asked == [[1, 2], [2]]
    asked.clear()
    assert engine.decide(make_pod("p").nominated("n3").build()).node == "n3"
    assert asked == [[3], [3]]


def test_nodes_left_out_by_a_pre_filter_are_counted_against_it() -> None:
    decision = decide("Narrow", "RackNode", racks="1561")
    assert decision.message == (
        "0/4 nodes are available: 2 node(s) didn't satisfy plugin(s) [Narrow], 2 node(s) were in the wrong rack."
    )


def test_pre_filters_that_agree_on_no_node_reject_them_all() -> None:
    decision = decide("Narrow", "NarrowElsewhere", "RackNode")
    assert decision.message == (
        "0/4 nodes are available: node(s) didn't satisfy plugin(s) [Narrow NarrowElsewhere] simultaneously."
    )


def test_a_soft_rejection_lets_the_other_pre_filters_speak_but_a_hard_one_does_not() -> None:
    def rejecting(status: Status) -> type[PreFilterPlugin]:
        class Rejecting(PreFilterPlugin):
            name = "Rejecting"

            def pre_filter(self, cycle: Cycle) -> Status:
                return status

        return Rejecting

    asked = []

    class Listening(PreFilterPlugin):
        name = "Listening"

        def pre_filter(self, cycle: Cycle) -> None:
            asked.append(cycle.pod.name)

    for status, expected in ((unschedulable("later"), ["p"]), (unresolvable("never"), [])):
        asked.clear()
        config = profile_of("Rejecting", "Listening")
        engine = make_engine(make_cluster(make_node("n0")), config=config, plugins=(rejecting(status), Listening))
        assert engine.decide(POD).message == f"0/1 nodes are available: {status.message}."
        assert asked == expected


# -- nominated pods ---------------------------------------------------------------------------------------------------


def test_a_promised_node_that_fits_is_taken_without_looking_at_others() -> None:
    state = make_cluster(make_node("n0"), make_node("n1").capacity(cpu="64"))
    decision = make_engine(state).decide(make_pod("p").requests(cpu="2").nominated("n0").build())
    assert (decision.node, decision.evaluated) == ("n0", 1)


def test_a_promised_node_that_no_longer_fits_is_forgotten() -> None:
    state = make_cluster(make_node("n0"), make_node("n1"), make_pod("big").requests(cpu="4").on("n0"))
    decision = make_engine(state).decide(make_pod("p").requests(cpu="2").nominated("n0").build())
    assert decision.node == "n1"


@pytest.mark.parametrize(("mine", "theirs", "fits"), [(5, 5, False), (5, 9, False), (9, 5, True)])
def test_room_is_left_for_nominated_pods_unless_they_are_less_important(mine: int, theirs: int, fits: bool) -> None:
    state = make_cluster(make_node("n0"))
    state.nominated.add(make_pod("promised").requests(cpu="3").priority(theirs).build(), "n0")
    decision = make_engine(state).decide(make_pod("p").requests(cpu="2").priority(mine).build())
    assert (decision.node == "n0") is fits
    assert ("Insufficient cpu" in decision.message) is not fits


def test_nominated_pods_must_not_be_counted_on_either() -> None:
    """The friend that this pod wants to be near is promised to the node, but it may never arrive."""
    state = make_cluster(make_node("n0").zone("a"))
    state.nominated.add(make_pod("friend").label(app="db").priority(9).build(), "n0")
    pod = make_pod("p").pod_affinity("topology.kubernetes.io/zone", app="db").build()
    assert make_engine(state).decide(pod).outcome is Outcome.UNSCHEDULABLE


def test_the_choice_among_named_nodes_does_not_see_ghosts() -> None:
    node = make_node("n0").build()
    state = make_cluster(node, make_node("n1"), make_pod("left-behind").on("n0"))
    state.delete(node)
    both = node_term("metadata.name", "In", "n0"), node_term("metadata.name", "In", "n1")
    decision = make_engine(state).decide(make_pod("p").requires_node(*both).build())
    assert (decision.node, decision.feasible) == ("n1", 1)


class TestPostFilters:
    class Promising(PostFilterPlugin):
        name = "Promising"

        def post_filter(
            self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
        ) -> tuple[PostFilterResult | None, Status | None]:
            return PostFilterResult(nominated="n1"), unschedulable("soon")

    class Indifferent(PostFilterPlugin):
        name = "Indifferent"

        def post_filter(
            self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
        ) -> tuple[PostFilterResult | None, Status | None]:
            return PostFilterResult(details="nothing"), Status(Code.PENDING, ("who knows",))

    def test_who_has_nothing_to_say_about_a_nomination_leaves_that_of_another_alone(self) -> None:
        plugins = (RackNode, self.Promising, self.Indifferent)
        config = profile_of(*(plugin.name for plugin in plugins))
        decision = make_engine(make_cluster(make_node("n1")), config=config, plugins=plugins).decide(POD)
        assert decision.post_filter is not None
        assert decision.post_filter.nominated == "n1"
        assert decision.message.endswith("soon, who knows")


def test_pending_is_no_answer_for_a_pre_filter() -> None:
    class Undecided(PreFilterPlugin):
        name = "Undecided"

        def pre_filter(self, cycle: Cycle) -> Status:
            return Status(Code.PENDING, ("later",))

    engine = make_engine(make_cluster(make_node("n1")), config=profile_of("Undecided"), plugins=(Undecided,))
    decision = engine.decide(POD)
    assert decision.outcome is Outcome.ERROR
    assert decision.message == 'running PreFilter plugin "Undecided": later'

"""However a cluster came to be what it is, its columns are those of one built anew."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.living_cluster import APPS, NAMESPACES, LivingCluster, pods_of

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import EVERYTHING, Requirement, Selector, selector_from_labels
from kubesched.framework.nodes import Nodes
from kubesched.state.carried_terms import CarriedTerms
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import ABSENT, Int32, Int64
from kubesched.state.facts import PodFacts
from kubesched.state.matching import MatchCounter
from kubesched.state.resources import FIXED_RESOURCES
from kubesched.state.row_counts import RowCounts
from kubesched.testing import HOSTNAME, ZONE

LABEL_KEYS = (HOSTNAME, ZONE, "disk", "absent-everywhere")
PRIORITIES = (0, 5, 10, 11)
EXTENDED = ("a.b/gpu", "a.b/nic", "a.b/fpga", "hugepages-2Mi")


class Question(NamedTuple):
    """What a match counter counts."""

    namespaces: frozenset[str] | None
    selector: Selector
    with_terminating: bool


questions = st.builds(
    Question,
    namespaces=st.none() | st.frozensets(st.sampled_from(NAMESPACES)),
    selector=st.sampled_from(
        [
            EVERYTHING,
            *(selector_from_labels({"app": app}) for app in APPS),
            Selector((Requirement("app", "DoesNotExist"),)),
        ]
    ),
    with_terminating=st.booleans(),
)


class ColumnsStayTrue(LivingCluster):
    """Compares, after every step, each column that has a meaning; by the names of nodes, as rows may differ."""

    def __init__(self) -> None:
        super().__init__()
        self.label_keys: set[str] = set()
        self.counters: dict[Question, MatchCounter] = {}
        self.waiting: list[PodFacts] = []

    @rule(pod=pods_of(LivingCluster.known_kinds))
    def pod_waits_to_be_decided_on(self, pod: Pod) -> None:
        """So its facts, which it shares with placed pods like it, outlive them."""
        self.waiting.append(self.state.facts(pod))

    @rule(pod=pods_of(LivingCluster.known_kinds))
    def pod_is_about_to_be_decided(self, pod: Pod) -> None:
        facts, nodes = self.state.facts(pod), self.state.nodes
        self.state.give_columns(facts)
        assert all(name in nodes.resources for name in facts.extended if nodes.offers_of(name))

    @rule(key=st.sampled_from(LABEL_KEYS))
    def somebody_asks_for_a_label(self, key: str) -> None:
        self.label_keys.add(key)
        self.state.nodes.label(key)

    @rule(question=questions)
    def somebody_asks_for_matches(self, question: Question) -> None:
        self.counters[question] = counter(self.state, question)

    @invariant()
    def everything_is_as_if_built_anew(self) -> None:
        fresh = self.built_anew()
        self._compare_nodes(fresh)
        self._compare_labels(fresh)
        self._compare_pods(fresh)
        self._compare_matches(fresh)

    @invariant()
    def nodes_are_listed_in_order_of_arrival_within_their_zone(self) -> None:
        assert sorted(self.state.nodes.order.names()) == sorted(self.nodes)
        by_zone: dict[str | None, list[str]] = {}
        for name in self.state.nodes.order.names():
            by_zone.setdefault(self.nodes[name].metadata.labels.get(ZONE), []).append(name)
        for names in by_zone.values():
            assert names == sorted(names, key=self.arrivals.index)

    def _compare_nodes(self, fresh: ClusterState) -> None:
        assert set(self.state.nodes.row_of) == set(fresh.nodes.row_of)
        for name in fresh.nodes.row_of:
            assert node_columns(self.state, name) == node_columns(fresh, name)
        assert self.state.nodes.live_count == fresh.nodes.live_count == len(self.nodes)
        for resource in EXTENDED:
            assert use_of(self.state, resource) == use_of(fresh, resource)

    def _compare_labels(self, fresh: ClusterState) -> None:
        for key in self.label_keys:
            assert labels(self.state, key) == labels(fresh, key)
            assert pods_by_value(self.state, key) == pods_by_value(fresh, key)

    def _compare_pods(self, fresh: ClusterState) -> None:
        assert pod_columns(self.state) == pod_columns(fresh)
        for placed in self.placed.values():
            known = self.state.placed(placed.pod)
            assert known is not None
            assert (known.pod, known.assumed) == (placed.pod, placed.assumed)

    def _compare_matches(self, fresh: ClusterState) -> None:
        for question, kept in self.counters.items():
            assert kept is counter(self.state, question)
            assert by_node(self.state, kept.counts) == by_node(fresh, counter(fresh, question).counts)
        assert carried_terms(self.state) == carried_terms(fresh)
        for key in self.label_keys:
            assert all(sums_are_true(self.state, counts, key) for counts in self.counters.values())
            assert all(carriers_are_true(self.state, carried, key) for carried in self.state.matches.carried)

    @property
    def arrivals(self) -> list[str]:
        """Nodes in order of arrival; moving to another zone is arriving there."""
        return list(self.nodes)

    def _apply_node(self, node: Node) -> None:
        known = self.nodes.get(node.name)
        if known is not None and known.metadata.labels.get(ZONE) != node.metadata.labels.get(ZONE):
            del self.nodes[node.name]
        super()._apply_node(node)


class ColumnsStayTrueWhereFewHaveOne(ColumnsStayTrue):
    """Only one resource besides cpu, memory and storage has a column at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.state.nodes.most_columns = 4


def node_columns(state: ClusterState, name: str) -> dict[str, Any]:
    table = state.nodes
    row = table.row_of[name]
    return {
        "name": table.names[row],
        "live": bool(table.live[row]),
        "object": table.nodes[row],
        "allocatable": table.allocatable[: len(FIXED_RESOURCES), row].tolist(),
        "requested": table.requested[: len(FIXED_RESOURCES), row].tolist(),
        "scoring requested": table.scoring_requested[: len(FIXED_RESOURCES), row].tolist(),
        "pods": int(table.pod_count[row]),
        "allowed pods": int(table.allowed_pods[row]),
        "unschedulable": bool(table.unschedulable[row]),
        "taints": None if table.taint_ids[row] == ABSENT else table.taint_lists.values[table.taint_ids[row]],
        "images": {image for image in ("nginx:latest", "redis:7") if _has_image(state, image, row)},
        "pods there": sorted(placed.pod.uid for placed in state.pods.pods_on(row)),
    }


def pod_columns(state: ClusterState) -> dict[str, Any]:
    table, names = state.pods, state.nodes.names
    lower = {p: [pod.row for pod in table.with_lower_priority(p)] for p in PRIORITIES}
    return {
        "by priority": table.by_priority,
        "lower priority": {p: {names[row] for row in rows} for p, rows in lower.items()},
        "any lower": [table.has_lower_priority_than(p) for p in PRIORITIES],
        "ports": {port: {names[row]: ips for row, ips in rows.items()} for port, rows in table.ports.items()},
        "claims": {claim: {names[row]: n for row, n in rows.items()} for claim, rows in table.claim_users.items()},
    }


def labels(state: ClusterState, key: str) -> dict[str, str | None]:
    column = state.nodes.label(key)
    ids = {name: int(column.ids[row]) for name, row in state.nodes.row_of.items()}
    return {name: None if value == ABSENT else column.values.values[value] for name, value in ids.items()}


def pods_by_value(state: ClusterState, key: str) -> dict[str, int]:
    column = state.nodes.label(key)
    sums = column.sum_by_value(state.nodes.pod_count[: state.nodes.size]).tolist()
    return {value: sums[i] for i, value in enumerate(column.values.values) if value is not None}


def counter(state: ClusterState, question: Question) -> MatchCounter:
    namespaces, selector, with_terminating = question
    return state.matches.counter(namespaces, selector, with_terminating=with_terminating)


def sums_are_true(state: ClusterState, counts: RowCounts, key: str) -> bool:
    column, size = state.nodes.label(key), state.nodes.size
    return np.array_equal(counts.by_value(column, size), column.sum_by_value(counts.counts[:size]))


def carriers_are_true(state: ClusterState, carried: CarriedTerms, key: str) -> bool:
    column, size = state.nodes.label(key), state.nodes.size
    sums = np.zeros(len(column.values) + 1, dtype=np.int64)
    carried.add_to(sums, column, size, 2)
    return np.array_equal(sums, 2 * column.sum_by_value(carried.counts(size)[:size]))


def carried_terms(state: ClusterState) -> dict[Any, dict[str, int]]:
    return {carried.terms: by_node(state, carried.counts(state.nodes.size)) for carried in state.matches.carried}


def by_node(state: ClusterState, counts: Int32 | Int64) -> dict[str, int]:
    """The rows of a column that are not 0. A row that belongs to nobody must be 0, so it has no name to be lost by."""
    return {state.nodes.names[row]: int(counts[row]) for row in counts.nonzero()[0]}


def use_of(state: ClusterState, resource: str) -> dict[str, tuple[int, int]]:
    """What nodes offer of a resource and what is requested there, whether or not it has a column."""
    nodes = Nodes(state)
    rows = zip(state.nodes.names, nodes.allocatable(resource).tolist(), nodes.requested(resource).tolist(), strict=True)
    found = {name: (offered, requested) for name, offered, requested in rows if name}
    one_by_one = {name: nodes.view(row) for name, row in state.nodes.row_of.items()}
    assert found == {name: (node.allocatable(resource), node.requested(resource)) for name, node in one_by_one.items()}
    return found


def _has_image(state: ClusterState, name: str, row: int) -> bool:
    image = state.nodes.images.get(name)
    return image is not None and row in image.rows


TestColumnsStayTrue = ColumnsStayTrue.TestCase
TestColumnsStayTrue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestColumnsStayTrueWhereFewHaveOne = ColumnsStayTrueWhereFewHaveOne.TestCase
TestColumnsStayTrueWhereFewHaveOne.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)

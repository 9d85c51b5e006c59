from __future__ import annotations

import pytest

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.api.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    compile_node_selector,
    compile_node_term,
    compile_selector,
    label_key_fault,
    label_value_fault,
    parse_int64,
    selector_from_labels,
)
from kubesched.testing import node_term


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not compile_selector(None).matches({"app": "web"})
    assert compile_selector(LabelSelector()).matches({"app": "web"})
    assert compile_selector(LabelSelector()).is_empty
    assert not compile_selector(None).is_empty


def test_all_labels_and_all_expressions_must_hold() -> None:
    selector = compile_selector(
        LabelSelector(
            match_labels={"app": "web"},
            match_expressions=(LabelSelectorRequirement(key="tier", operator="In", values=("front", "edge")),),
        )
    )
    assert selector.matches({"app": "web", "tier": "edge", "more": "x"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "db", "tier": "edge"})


def test_selectors_that_ask_the_same_are_the_same_question() -> None:
    one = compile_selector(LabelSelector(match_labels={"a": "1", "b": "2"}))
    other = compile_selector(LabelSelector(match_labels={"b": "2", "a": "1"}))
    assert one == other
    assert hash(one) == hash(other)


def test_labels_as_a_selector_ask_for_exactly_these() -> None:
    assert selector_from_labels({"app": "web"}).matches({"app": "web", "x": "y"})
    assert selector_from_labels({}) == EVERYTHING


def test_further_requirements_narrow_a_selector_but_nothing_stays_nothing() -> None:
    more = [Requirement("tier", "Exists")]
    assert not selector_from_labels({"app": "web"}).also(more).matches({"app": "web"})
    assert NOTHING.also(more) == NOTHING


@pytest.mark.parametrize(
    ("operator", "values", "accepted", "refused"),
    [
        ("In", {"a", "b"}, ["a", "b"], ["c", "", None]),
        ("NotIn", {"a"}, ["b", "", None], ["a"]),
        ("Exists", set(), ["a", ""], [None]),
        ("DoesNotExist", set(), [None], ["a", ""]),
        ("Gt", {"5"}, ["6", "100"], ["5", "-6", "6.5", "six", "", None]),
        ("Lt", {"5"}, ["4", "-100"], ["5", "4.5", "four", "", None]),
        ("Gt", {"five"}, [], ["6", None]),
    ],
)
def test_operators(operator: str, values: set[str], accepted: list[str | None], refused: list[str | None]) -> None:
    requirement = Requirement("key", operator, frozenset(values))
    assert [value for value in [*accepted, *refused] if requirement.accepts(value)] == accepted


def test_empty_terms_of_a_node_selector_match_nothing_and_are_left_out() -> None:
    terms = (NodeSelectorTerm(), node_term("zone", "Exists"))
    assert len(compile_node_selector(NodeSelector(node_selector_terms=terms))) == 1


@pytest.mark.parametrize(
    ("term", "fault"),
    [
        (node_term("cpus", "Gt", "4"), ""),
        (node_term("cpus", "Gt", "many"), "the value must be an integer"),
        (node_term("cpus", "Lt", "1", "2"), "exactly one value is required"),
        # An integer that is no label value: the API server lets it pass, kube-scheduler does not.
        (node_term("cpus", "Gt", "-5"), "'-5' is not a label value"),
        (node_term("zone", "In"), "values set can't be empty"),
        (node_term("zone", "Exists", "a"), "values set must be empty"),
        (node_term("zone", "In", "a b"), "'a b' is not a label value"),
        (node_term("-zone", "Exists"), "'-zone' is not a label key"),
        (node_term("zone", "Near", "5"), "'Near' is not supported"),  # type: ignore[arg-type]
        (node_term("metadata.name", "In", "n1"), ""),
        (node_term("metadata.name", "In", "n1", "n2"), "must have one element"),
        (node_term("metadata.name", "Exists"), "'Exists' is not supported for fields"),
    ],
)
def test_a_malformed_term_says_what_is_wrong_with_it(term: NodeSelectorTerm, fault: str) -> None:
    found = compile_node_term(term).fault
    assert fault in found
    assert bool(found) == bool(fault)


def test_the_first_fault_of_a_term_is_the_one_reported() -> None:
    bad = NodeSelectorRequirement(key="zone", operator="In")
    term = NodeSelectorTerm(match_expressions=(bad,), match_fields=(bad,))
    assert "values set can't be empty" in compile_node_term(term).fault


@pytest.mark.parametrize("key", ["app", "a.b_c-d", "example.com/app", "x" * 63, "a/b"])
def test_legal_label_keys(key: str) -> None:
    assert not label_key_fault(key)


@pytest.mark.parametrize("key", ["", "/app", "example.com/", "Example.com/app", "a/b/c", "x" * 64, "app-", "a..b/c"])
def test_illegal_label_keys(key: str) -> None:
    assert label_key_fault(key)


def test_label_values_may_be_empty_but_not_long_or_pointed() -> None:
    assert not label_value_fault("")
    assert not label_value_fault("v1.2_3-x")
    assert label_value_fault("x" * 64)
    assert label_value_fault(".x")


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("-3", -3), ("+3", 3), (str(2**63 - 1), 2**63 - 1), (str(2**63), None), ("1.0", None), ("", None)],
)
def test_integers_have_64_bits(text: str, number: int | None) -> None:
    assert parse_int64(text) == number

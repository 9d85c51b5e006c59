"""Whatever people write, what they get is a selector or an error of CEL."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cel.devices import GPU, cost_of, spelled_out

from kubesched.cel import CelError, CompileError, EvaluationError, compile_selector, view_device
from kubesched.cel.functions import FUNCTIONS
from kubesched.cel.metering import worst_case_cost
from kubesched.cel.parser import parse
from kubesched.cel.selector import CompiledSelector, MeteredSelector

WORDS = [
    *("device", ".", "attributes", "capacity", "driver", "[", "]", "(", ")", "{", "}", ",", ":", "?", ".?", "[?"),
    *("&&", "||", "==", "!=", "<", "in", "+", "-", "*", "/", "%", "!", "true", "null", "1", "2u", "3.5", "0x", "1e"),
    *('"a"', 'b"x"', "'", '"""', "r'", "\\", "@", "&", "//", "\n", "x", "cel.bind(x,", ".all(x,", ".map(x,", "has("),
]
LEAVES = [
    *("$.model", "$.mem", "$.mig", "$.ver", "$.nope", "#.memory", "#.frac", "device", "device.attributes"),
    *("1", "0", "2u", "3.5", "'a'", "b'x'", "true", "null", "[]", "{}", "int", "[1, 2]", "['a']", "{'a': 1}"),
    *("quantity('1')", "semver('1.2.3')", "duration('1h')", "timestamp('2026-01-01T00:00:00Z')", "optional.none()"),
    *("optional.of(1)", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "url('https://a.b/c')", "9223372036854775807", "x"),
]
OPERATORS = ["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "in", "&&", "||"]
NAMES = sorted(name for name in FUNCTIONS if name[0].isalpha())


def larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions that mostly pass the type checker, for dyn() hides what the parts are."""
    part = smaller.map("dyn({})".format)
    args = st.lists(part, max_size=3).map(", ".join)
    folds = st.sampled_from(["all", "exists", "exists_one", "map", "filter", "sortBy"])
    return st.one_of(
        st.tuples(part, st.sampled_from(OPERATORS), part).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(part, st.sampled_from(NAMES), args).map(lambda p: f"{p[0]}.{p[1]}({p[2]})"),
        st.tuples(st.sampled_from(NAMES), args).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(part, folds, part).map(lambda p: f"{p[0]}.{p[1]}(x, {p[2]})"),
        st.tuples(part, part, part).map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})"),
        st.tuples(part, part).map(lambda p: f"{p[0]}[{p[1]}]"),
        st.tuples(part, part).map(lambda p: f"cel.bind(x, {p[0]}, {p[1]})"),
        st.tuples(part, part).map(lambda p: f"{{{p[0]}: {p[1]}}}"),
        part.map("-{}".format),
        part.map("{}.?a.b".format),
    )


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), larger, max_leaves=8).map(lambda text: f"dyn({text}) == true")


@given(st.text())
def test_any_text_compiles_or_is_refused(text: str) -> None:
    with suppress(CompileError):
        compile_selector(text)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_words_compile_or_are_refused(text: str) -> None:
    with suppress(CompileError):
        compile_selector(text)


HALF_A_PAIR = "\ud800"


@pytest.mark.parametrize(
    "expression",
    [
        f'b"{HALF_A_PAIR}" == b"\\xef\\xbf\\xbd"',
        '"%x".format([dyn($.model)]) == "efbfbd"',
        'format.dns1123Label().validate($.model).hasValue() && bytes($.model) == b"\\xef\\xbf\\xbd"',
        'url("/" + $.model).getEscapedPath() == "/%EF%BF%BD"',
        f'"{HALF_A_PAIR}b".find("^.b$") == $.model + "b" && "{HALF_A_PAIR}".matches("^{HALF_A_PAIR}$")',
        f'device.attributes["d"].all(k, k.matches("^{HALF_A_PAIR}$")) && device.driver.matches("^.$")',
    ],
)
def test_half_a_surrogate_pair_is_an_unknown_character(expression: str) -> None:
    device = view_device(HALF_A_PAIR, {f"d/{HALF_A_PAIR}": 1, "gpu.example.com/model": HALF_A_PAIR}, {})
    assert compile_selector(spelled_out(expression)).matches(device)


def result_of(selector: CompiledSelector | MeteredSelector) -> bool | str:
    try:
        return selector.matches(GPU)
    except EvaluationError as error:
        return str(error)


@given(EXPRESSIONS)
def test_any_expression_evaluates_or_fails_and_counting_costs_changes_nothing(expression: str) -> None:
    try:
        selector = compile_selector(spelled_out(expression))
    except CompileError:
        return
    assert result_of(selector) == result_of(selector.metered())


@given(EXPRESSIONS)
def test_no_evaluation_costs_more_than_the_worst_case_estimated(expression: str) -> None:
    tree, _ = parse(spelled_out(expression))
    try:
        cost = cost_of(expression)
    except CelError:
        return
    assert tree is not None
    assert cost <= worst_case_cost(tree)

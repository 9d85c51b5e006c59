from __future__ import annotations

import pytest
from tests.unit.cel.devices import cost_of, matches, spelled_out

from kubesched.cel import CelDevice, EvaluationError, compile_selector, view_device

TOO_EXPENSIVE = "CEL runtime error: operation cancelled: actual cost limit exceeded"


def nested(levels: int) -> str:
    expression = "true"
    for level in range(levels):
        expression = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x{level}, {expression})"
    return expression


@pytest.mark.parametrize(
    "expression",
    [
        nested(6),
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        "lists.range(2000).distinct().size() == 2000",
        f"cel.bind(a, '{'x' * 3000}', (a + a + a + a).contains(a + a + a))",
        f"'{'x' * 3000}'.replace('', '{'y' * 3000}').replace('', '{'z' * 3000}').size() > 0",
        "lists.range(1000000).size() == 1000000",
    ],
)
def test_expensive_evaluation_is_stopped(expression: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        matches(expression)
    assert str(caught.value) == TOO_EXPENSIVE


def test_nothing_absorbs_that_the_limit_was_exceeded() -> None:
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        matches(f"cel.bind(x, {nested(6)}, x) || true")


def test_text_that_doubles_again_and_again_is_stopped_before_memory_is_full() -> None:
    doubled = "a + a"
    for _ in range(35):
        doubled = f"cel.bind(a, {doubled}, a + a)"
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        matches(f"cel.bind(a, 'xxxxxxxxxx', {doubled}) == 'x'")


@pytest.mark.parametrize("expression", [nested(4), "lists.range(100).all(x, x >= 0)"])
def test_evaluation_within_the_limit_is_not_stopped(expression: str) -> None:
    assert matches(expression)


def large_device() -> CelDevice:
    return view_device("gpu.example.com", {f"a{i}": "x" * 5000 for i in range(1000)}, {})


def test_device_beyond_the_limits_of_the_api_is_metered() -> None:
    expression = 'device.attributes["gpu.example.com"].exists(k, $.a0.contains("y" + $.a1))'
    selector = compile_selector(spelled_out(expression))
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        selector.matches(large_device())


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("true", 0),
        ("device.allowMultipleAllocations", 2),
        ('device.driver == "gpu.example.com"', 2 + 2),
        ('$.model == "a100"', 4 + 1),
        ("$.mem > 20", 4 + 1),
        ("has($.mem)", 3),
        ('$.model.startsWith("a")', 4 + 1),
        ('$.model in ["a100", "t4"]', 4 + 2),
        ('#.memory.compareTo(quantity("40Gi")) >= 0', 4 + 1 + 1 + 1),
        ("[1, 2, 3].all(x, x > 0)", 3 * (3 + 2)),
    ],
)
def test_costs_follow_the_rules_of_upstream(expression: str, cost: int) -> None:
    assert cost_of(expression) == cost


def test_an_evaluation_that_takes_long_is_interrupted_in_the_middle() -> None:
    calls = 0

    def interrupt() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise TimeoutError

    selector = compile_selector("lists.range(100).all(x, lists.range(100).all(y, x + y >= 0))")
    with pytest.raises(TimeoutError):
        selector.matches(view_device("gpu.example.com", {}, {}), interrupt)
    assert calls == 3


def test_nobody_is_called_for_an_expression_that_is_cheap() -> None:
    def interrupt() -> None:
        raise AssertionError

    assert compile_selector("lists.range(3).size() == 3").matches(view_device("gpu.example.com", {}, {}), interrupt)


@pytest.mark.parametrize("call", ["{}.distinct().size() > 0", "sets.equivalent({0}, {0})", "sets.contains({0}, {0})"])
def test_what_would_compare_every_pair_is_refused_before_it_does(call: str) -> None:
    """A hundred thousand elements: ten thousand million comparisons, for which nobody would wait."""
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        matches(call.format("lists.range(100000)"))

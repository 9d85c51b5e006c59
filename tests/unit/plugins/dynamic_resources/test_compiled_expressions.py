"""What expressions are compiled to takes bytes by what they say, not by their length; the least possible is kept."""

from __future__ import annotations

import gc
import tracemalloc
from itertools import count

import pytest
from tests.adversary import SERIAL, different_devices
from tests.device_builders import make_claim, make_class, request, with_claims
from tests.unit.scheduler.world import World

from kubesched.api.release import V1_36
from kubesched.cel import compile_selector
from kubesched.framework.budget import Budget
from kubesched.plugins.shared.devices import selecting
from kubesched.plugins.shared.devices.selecting import CompiledExpressions, Expression
from kubesched.scheduler.attempt.attempt import Paused
from kubesched.testing import make_node, make_pod

SHAPES = {
    "comparisons": "&&".join(["1<2"] * 1000),
    "constants": "&&".join(["true"] * 1000),
    "negations": "||".join(["!true"] * 1000),
    "lists": f"[{','.join(['[device]'] * 500)}].size()>0",
    "loops": "||".join(f"[1,2,{i}].exists(x,x=={i}&&x<3)" for i in range(200)),
    "attributes": "||".join(f"{SERIAL}!={i}" for i in range(150)),
    "a long word": f'device.driver=="{"x" * 9000}"',
}


@pytest.mark.parametrize("metered", [False, True])
@pytest.mark.parametrize("text", SHAPES.values(), ids=[*SHAPES])
def test_size_of_a_compiled_expression_is_no_less_than_what_it_takes(text: str, metered: bool) -> None:
    compile_selector(text)
    gc.collect()
    tracemalloc.start()
    try:
        selector = compile_selector(text, with_lists=True)
        if metered:
            selector.metered()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= selector.size + 5000


def test_expressions_that_were_compiled_first_are_forgotten_and_known_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selecting, "MOST_COMPILED", 20_000)
    compiled, expressions = CompiledExpressions(), [Expression(f"{SERIAL} != {i}", V1_36) for i in range(100)]
    for expression in expressions:
        compiled.compile(expression)
        assert sum(one.size for one in expressions) == compiled.size <= 20_000
    assert not expressions[0].is_compiled
    assert all(expression.names == frozenset({"gpu.example.com/serial"}) for expression in expressions)
    assert not expressions[0].is_compiled


def test_claim_of_more_expressions_than_are_kept_compiled_gets_its_devices_in_however_many_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selecting, "MOST_COMPILED", 0)
    looks = count()
    world = World(make_class(), make_node("n"), budget=Budget(lambda: next(looks) / 100, turn=0.015, limit=1000))
    world.see(different_devices("n", 6))
    asked = (
        request(f"r{k}", 1, *(f"{SERIAL} != {1000 + 10 * k + i}" for i in range(8)), f"{SERIAL} > {k}")
        for k in range(3)
    )
    world.see(make_claim("large", *asked), with_claims(make_pod("p"), "large"))
    attempt, turns = world.decided(), 1
    while isinstance(attempt.state, Paused):
        world.scheduler.decide(attempt)
        turns += 1
        assert turns < 2000, "it begins anew in each turn"
    assert world.finish(attempt).node == "n"
    assert turns > 3

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from kubesched.api.affinity import NodeSelectorRequirement
from kubesched.api.meta import Record
from kubesched.api.schema import Mistake, convert


class Port(Record, frozen=True):
    container_port: int
    protocol: Literal["TCP", "UDP"] = "TCP"


class Thing(Record, frozen=True):
    name: str = ""
    count: Annotated[int, msgspec.Meta(ge=0, le=10)] = 1
    ratio: float = 0.5
    enabled: bool = True
    ports: tuple[Port, ...] = ()
    labels: dict[str, str] = {}
    amount: str | int | float = 0
    parent: Port | None = None
    data: bytes = b""


class Seconds(float):
    pass


class Timed(Record, frozen=True):
    wait: Seconds = Seconds(1)
    grace: Seconds | None = None


def read_seconds(value: Any) -> Seconds:
    if not isinstance(value, str):
        raise ValueError("expected seconds")
    return Seconds(value)


def mistakes(value: Any, **options: Any) -> list[str]:
    thing, found = convert(value, Thing, **options)
    assert (thing is None) == bool(found)
    return [str(mistake) for mistake in found]


def test_a_value_of_the_right_shape_becomes_a_record() -> None:
    thing, found = convert({"name": "a", "ports": [{"containerPort": 80}], "ratio": 2}, Thing, unknown="error")
    assert found == []
    assert thing == Thing(name="a", ports=(Port(container_port=80),), ratio=2.0)


@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_every_mistake_is_found_with_its_path(unknown: str) -> None:
    value = {
        "name": 5,
        "count": True,
        "ports": [{"containerPort": 80}, {"containerPort": "http", "protocol": "ICMP"}, {}],
        "labels": {"a": 1},
        "parent": [],
    }
    assert mistakes(value, path="thing", unknown=unknown) == [
        "thing.name: expected a string, got 5",
        "thing.count: expected an integer, got true",
        'thing.ports[1].containerPort: expected an integer, got "http"',
        'thing.ports[1].protocol: expected "TCP" or "UDP", got "ICMP"',
        "thing.ports[2].containerPort: required field is missing",
        "thing.labels.a: expected a string, got 1",
        "thing.parent: expected a mapping, got a list",
    ]


def test_unknown_fields_are_ignored_unless_asked_for() -> None:
    assert mistakes({"nmae": "a"}) == []
    assert mistakes({"nmae": "a", "zzz": 1}, unknown="error") == [
        'nmae: unknown field; did you mean "name"?',
        "zzz: unknown field",
    ]


def test_null_counts_as_absent() -> None:
    thing, found = convert({"name": None, "count": None, "ports": None, "parent": None}, Thing)
    assert (thing, found) == (Thing(), [])


def test_null_elements_are_zero_values() -> None:
    thing, found = convert({"labels": {"a": None}}, Thing)
    assert (thing, found) == (Thing(labels={"a": ""}), [])


def test_bounds_are_checked() -> None:
    assert mistakes({"count": 11}, unknown="error") == ["count: expected an integer from 0 to 10, got 11"]


def test_integers_have_64_bits() -> None:
    assert mistakes({"ports": [{"containerPort": 2**63}]}, unknown="error") != []
    assert mistakes({"ports": [{"containerPort": 2**63 - 1}]}, unknown="error") == []


def test_a_union_takes_any_of_its_types() -> None:
    for amount in ("1Gi", 5, 0.5):
        thing, found = convert({"amount": amount}, Thing, unknown="error")
        assert thing is not None
        assert thing.amount == amount
        assert found == []
    expected = "amount: expected a string or an integer or a number, got true"
    assert mistakes({"amount": True}, unknown="error") == [expected]


def test_bytes_are_base64() -> None:
    thing, _ = convert({"data": "aGVsbG8="}, Thing, unknown="error")
    assert thing == Thing(data=b"hello")
    assert mistakes({"data": "?"}, unknown="error") == ['data: expected a base64 string, got "?"']


def test_shape_only_leaves_values_to_validation() -> None:
    requirement, found = convert({"operator": "Bad"}, NodeSelectorRequirement, unknown="error", shape_only=True)
    assert found == []
    assert requirement is not None
    assert (requirement.key, requirement.operator) == ("", "Bad")
    _, found = convert({"operator": 5}, NodeSelectorRequirement, shape_only=True)
    assert found == [Mistake("operator", "expected a string, got 5")]


def test_hooks_read_types_of_their_own() -> None:
    timed, found = convert({"wait": "2.5", "grace": None}, Timed, unknown="error", hooks={Seconds: read_seconds})
    assert (timed, found) == (Timed(wait=Seconds(2.5)), [])


def test_hooks_see_null_where_it_is_not_optional() -> None:
    _, found = convert({"wait": None}, Timed, unknown="error", hooks={Seconds: read_seconds})
    assert found == [Mistake("wait", "expected seconds")]


def test_hooks_serve_lenient_reading_too() -> None:
    timed, found = convert({"wait": "3", "other": 1}, Timed, hooks={Seconds: read_seconds})
    assert (timed, found) == (Timed(wait=Seconds(3)), [])


def test_long_values_are_cut_short_in_messages() -> None:
    [line] = mistakes({"count": "x" * 1000}, unknown="error")
    assert len(line) < 120


def test_a_mistake_is_one_line_whatever_the_keys_are() -> None:
    assert mistakes({"a\nb": 1}, unknown="error") == ['"a\\nb": unknown field']

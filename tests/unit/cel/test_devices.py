from __future__ import annotations

import pytest
from tests.unit.cel.devices import matches

from kubesched.api.quantity import parse_quantity
from kubesched.cel import EvaluationError, Version, view_device


def test_name_without_a_domain_belongs_to_the_driver() -> None:
    device = view_device("d.io", {"a": 1, "d.io/b": 2, "other.io/c": 3}, {})
    assert matches('device.attributes["d.io"] == {"a": 1, "b": 2} && device.attributes["other.io"].c == 3', device)


def test_capacity_is_qualified_likewise() -> None:
    device = view_device("d.io", {}, {"m": parse_quantity("1Gi"), "other.io/n": parse_quantity("2")})
    assert matches('device.capacity["d.io"].m == quantity("1Gi") && has(device.capacity["other.io"].n)', device)


def test_every_kind_of_attribute_is_seen_as_what_it_is() -> None:
    device = view_device("d.io", {"i": 1, "b": True, "s": "x", "v": Version("1.2.3")}, {})
    assert matches('cel.bind(a, device.attributes["d.io"], a.i == 1 && a.b && a.s == "x" && a.v.minor() == 2)', device)


def test_device_may_be_allocated_several_times_only_if_it_says_so() -> None:
    assert matches("device.allowMultipleAllocations", view_device("d.io", {}, {}, allow_multiple_allocations=True))
    assert not matches("device.allowMultipleAllocations", view_device("d.io", {}, {}))


@pytest.mark.parametrize("expression", ["true", "device.driver == 'd.io'", "false && true"])
def test_device_with_a_version_that_is_none_fails_every_selector(expression: str) -> None:
    device = view_device("d.io", {"ok": 1, "v": Version("1.2")}, {})
    with pytest.raises(EvaluationError) as caught:
        matches(expression, device)
    expected = "attribute v: parse semantic version: No Major.Minor.Patch elements found"
    assert str(caught.value) == f"CEL runtime error: {expected}"


def test_device_with_an_attribute_of_unknown_kind_fails_every_selector() -> None:
    with pytest.raises(EvaluationError, match="attribute a: unsupported attribute value"):
        matches("true", view_device("d.io", {"a": None}, {}))

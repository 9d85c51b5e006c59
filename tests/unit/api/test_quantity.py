from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.quantity import ZERO, Quantity, QuantityError, QuantityText, parse_quantity

MAX_INT64 = 2**63 - 1


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.amount) * Fraction(10) ** quantity.scale


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("007", 7),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1.5", Fraction(3, 2)),
        ("3n", Fraction(3, 10**9)),
        ("3u", Fraction(3, 10**6)),
        ("100m", Fraction(1, 10)),
        ("2k", 2000),
        ("2M", 2 * 10**6),
        ("2G", 2 * 10**9),
        ("2T", 2 * 10**12),
        ("2P", 2 * 10**15),
        ("2E", 2 * 10**18),
        ("1Ki", 2**10),
        ("1Mi", 2**20),
        ("1Gi", 2**30),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1.5Gi", 3 * 2**29),
        ("0.5Ki", 512),
        ("-1Ki", -1024),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("15e-1", Fraction(3, 2)),
        ("12E", 12 * 10**18),
    ],
)
def test_every_legal_spelling_is_read_exactly(text: str, amount: Fraction | int) -> None:
    assert exact(parse_quantity(text)) == amount


@pytest.mark.parametrize(
    ("number", "milli"), [(2, 2000), (0.1, 100), (1.5, 1500), (1e3, 10**6), (1e-3, 1), (2**40, 2**40 * 1000)]
)
def test_json_numbers_are_quantities_too(number: QuantityText, milli: int) -> None:
    assert parse_quantity(number).milli() == milli


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1 Gi", "1gi", "1ki", "1KI", "1Kib", "one", "1e", "1e1.5", "--1", "1.2.3", "0x10", "1_000"]
)
def test_anything_else_is_refused_with_an_example_of_what_is_legal(text: str) -> None:
    with pytest.raises(QuantityError, match="not a quantity such as 100m"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("100m", 1), ("1.1", 2), ("1n", 1), ("-1.1", -2), ("1.0", 1), ("1500m", 2), ("0.1Ki", 103), ("0.0001n", 1)],
)
def test_whole_units_are_rounded_away_from_zero(text: str, value: int) -> None:
    assert parse_quantity(text).value() == value


@pytest.mark.parametrize(("text", "milli"), [("1", 1000), ("0.0001", 1), ("1u", 1), ("1.0005", 1001), ("-1u", -1)])
def test_thousandths_are_rounded_away_from_zero(text: str, milli: int) -> None:
    assert parse_quantity(text).milli() == milli


def test_nothing_finer_than_a_billionth_is_kept() -> None:
    assert exact(parse_quantity("0.00000000011")) == Fraction(1, 10**9)


def test_what_does_not_fit_64_bits_reads_as_zero() -> None:
    assert parse_quantity("12E").value() == 0
    assert parse_quantity("10E").milli() == 0


def test_a_sum_beyond_64_bits_wraps_around() -> None:
    total = parse_quantity("12E").plus(parse_quantity("1"))
    assert total.value() == 12 * 10**18 + 1 - 2**64


def test_a_spelling_with_too_many_digits_wraps_around() -> None:
    assert parse_quantity(str(2**63)).value() == -(2**63)


@pytest.mark.parametrize(("text", "value"), [("8Ei", MAX_INT64), ("16Ei", MAX_INT64), ("-16Ei", -MAX_INT64)])
def test_binary_suffixes_stop_at_the_largest_64_bit_number(text: str, value: int) -> None:
    assert parse_quantity(text).value() == value


def test_the_largest_64_bit_number_itself_is_read() -> None:
    assert parse_quantity(str(MAX_INT64)).value() == MAX_INT64


@st.composite
def spellings(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(["", "+", "-"]))
    whole = draw(st.integers(0, 10**12))
    fraction = draw(st.one_of(st.just(""), st.integers(0, 999).map(lambda n: f".{n:03}")))
    suffix = draw(st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "e2", "E-2"]))
    return f"{sign}{whole}{fraction}{suffix}"


@given(spellings(), spellings())
def test_sums_are_exact(one: str, other: str) -> None:
    a, b = parse_quantity(one), parse_quantity(other)
    assert exact(a.plus(b)) == exact(a) + exact(b)


@given(spellings(), spellings())
def test_comparison_is_exact(one: str, other: str) -> None:
    a, b = parse_quantity(one), parse_quantity(other)
    assert a.exceeds(b) == (exact(a) > exact(b))


@given(spellings())
def test_nothing_added_changes_nothing(text: str) -> None:
    quantity = parse_quantity(text)
    assert exact(quantity.plus(ZERO)) == exact(ZERO.plus(quantity)) == exact(quantity)


@given(spellings())
def test_rounding_goes_to_the_next_whole_number_and_no_further(text: str) -> None:
    quantity = parse_quantity(text)
    value, amount = quantity.value(), exact(quantity)
    if abs(amount) <= MAX_INT64:
        assert 0 <= abs(value) - abs(amount) < 1

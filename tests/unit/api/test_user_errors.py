from __future__ import annotations

import pytest

from kubesched.api.errors import UserError, aggregated, located


class BadFileError(UserError):
    """A kind of its own."""


def test_error_reads_as_its_lines() -> None:
    error = UserError("a: expected a number", "b: expected text")
    assert error.lines == ["a: expected a number", "b: expected text"]
    assert str(error) == "a: expected a number\nb: expected text"


def test_every_line_begins_with_where_the_mistake_is() -> None:
    with pytest.raises(BadFileError) as caught, located("f.yaml"):
        raise BadFileError("a: wrong", "b: wrong")
    assert str(caught.value) == "f.yaml: a: wrong\nf.yaml: b: wrong"


def test_errors_of_another_kind_are_left_as_they_are() -> None:
    with pytest.raises(UserError) as caught, located("f.yaml", BadFileError):
        raise UserError("the port is taken")
    assert caught.value.lines == ["the port is taken"]


@pytest.mark.parametrize(("mistakes", "line"), [(["a"], "a"), (["a", "b"], "[a, b]")])
def test_several_mistakes_in_one_line_are_bracketed(mistakes: list[str], line: str) -> None:
    assert aggregated(mistakes) == line

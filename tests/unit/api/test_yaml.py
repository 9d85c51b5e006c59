from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.yaml import Document, YamlError, documents, dump


def only(text: str) -> Any:
    [document] = documents(text)
    return document.value


def error_in(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        list(documents(text))
    return caught.value


def test_documents_come_with_the_line_they_start_on() -> None:
    assert list(documents("a: 1\n---\n# two\nb: 2\n")) == [Document({"a": 1}, 1), Document({"b": 2}, 4)]


def test_text_without_content_has_no_documents() -> None:
    assert list(documents("# nothing here\n")) == []


def test_a_later_document_is_not_looked_at_before_it_is_asked_for() -> None:
    stream = documents("a: 1\n---\nb: [\n")
    assert next(stream).value == {"a": 1}
    with pytest.raises(YamlError):
        next(stream)


@pytest.mark.parametrize("word", ["y", "Y", "yes", "on", "ON", "true", "True"])
def test_words_for_true_are_those_of_go(word: str) -> None:
    assert only(f"a: {word}") == {"a": True}


@pytest.mark.parametrize("word", ["n", "no", "Off", "FALSE"])
def test_words_for_false_are_those_of_go(word: str) -> None:
    assert only(f"a: {word}") == {"a": False}


@pytest.mark.parametrize("word", ["~", "null", "NULL", ""])
def test_words_for_null(word: str) -> None:
    assert only(f"a: {word}") == {"a": None}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("-7", -7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("089", 89),
        (".5", 0.5),
        ("12.5", 12.5),
        ("1e3", 1000),
        ("12.0", 12),
    ],
)
def test_numbers_are_those_of_go(text: str, number: float) -> None:
    value = only(f"a: {text}")["a"]
    assert value == number
    assert type(value) is type(number)


@pytest.mark.parametrize("text", ["2024-01-01", "2024-01-01T00:00:00Z", "1:30:00", "100m", "1.2.3", "1e999", "0x", "+"])
def test_what_only_resembles_a_number_stays_a_string(text: str) -> None:
    assert only(f"a: {text}") == {"a": text}


def test_quoted_scalars_and_str_tags_are_strings() -> None:
    assert only("a: ['12', \"yes\", !!str 5, !mine 7]") == {"a": ["12", "yes", "5", "7"]}


def test_binary_is_decoded() -> None:
    assert only("a: !!binary aGVsbG8=") == {"a": "hello"}


def test_a_tag_that_does_not_fit_is_an_error() -> None:
    assert error_in("a: !!int lots").problem == '"lots" is not a !!int'
    assert error_in("a: !!int no").problem == '"no" is not a !!int'
    assert only("a: !!float 5") == {"a": 5}


def test_keys_become_strings() -> None:
    assert only("1: a\ntrue: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


def test_null_is_no_key() -> None:
    assert error_in("~: a").problem == "a key must be a string"


def test_a_key_given_twice_is_an_error_with_its_line() -> None:
    error = error_in("a: 1\nb:\n  c: 1\n  c: 2\n")
    assert (error.problem, error.line, error.column) == ('key "c" is given twice', 4, 3)


def test_a_key_given_twice_in_json_is_an_error_with_its_line() -> None:
    error = error_in('{\n "a": {"b": 1,\n "b": 2}}')
    assert (error.problem, error.line) == ('key "b" is given twice', 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\uD83D", "\ufffd"),
        (r"\ude00\ud83d\ude00\ud83d", "\ufffd\U0001f600\ufffd"),
        (r"\\ud83d", r"\ud83d"),
    ],
)
def test_half_a_character_in_json_is_replaced_as_in_go(text: str, value: str) -> None:
    assert only(f'{{"a": "{text}"}}') == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "base: &base {a: 1}\nx:\n  <<: *base\n  a: 2\n",
        "base: &base {a: 1}\nx:\n  a: 2\n  <<: *base\n",
        "x:\n  <<: [{a: 1}, {a: 2}]\n",
        "x:\n  <<: {a: 1}\n  <<: {a: 2}\n",
    ],
)
def test_strictly_merged_keys_are_given_and_cannot_be_given_again(text: str) -> None:
    with pytest.raises(YamlError, match='key "a" is given twice'):
        list(documents(text, strict=True))
    assert list(documents(text))


def test_strictly_keys_may_be_merged_that_nobody_else_gives() -> None:
    [document] = documents("base: &base {a: 1}\nx:\n  <<: *base\n  b: 2\n", strict=True)
    assert document.value["x"] == {"a": 1, "b": 2}


def test_a_document_of_another_yaml_version_is_refused() -> None:
    assert only("%YAML 1.1\n---\na: 1\n") == {"a": 1}
    assert "only version 1.1" in str(error_in("%YAML 1.2\n---\na: 1\n"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709552000),
        ("-9223372036854775809", -9223372036854776000),
        ("12345678901234567890123", 1.2345678901234568e22),
        ("1234567890123456789.0", 1234567890123456800),
        ("0x10000000000000000", "0x10000000000000000"),
    ],
)
def test_numbers_beyond_64_bits_lose_digits_as_in_go(text: str, value: Any) -> None:
    assert only(f"a: {text}") == {"a": value}


def test_merged_keys_give_way_to_the_mapping_s_own() -> None:
    text = "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nx:\n  b: 9\n  <<: [*base, *other]\n"
    assert only(text)["x"] == {"a": 1, "b": 9, "c": 4}


def test_an_anchor_within_itself_is_an_error() -> None:
    assert error_in("a: &a [*a]").problem == "anchor &a contains itself"


def test_aliases_are_values_like_any_other() -> None:
    assert only("a: &x [1, 2]\nb: *x\nc: &k name\n*k : 3\n") == {"a": [1, 2], "b": [1, 2], "c": "name", "name": 3}


def test_an_alias_without_anchor_is_an_error() -> None:
    assert error_in("a: *x").problem == "anchor &x is not defined"


def test_aliases_of_aliases_may_not_multiply_without_end() -> None:
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
    assert error_in("a0: &a0 [x]\n" + levels).problem == "aliases make too much of this document"


def test_infinity_has_no_place_in_json() -> None:
    assert error_in("a: .inf").problem == ".inf cannot be written in JSON"


def test_syntax_errors_say_where() -> None:
    error = error_in("a: 1\nb: [1, 2\nc: 3\n")
    assert error.line == 3
    assert str(error).startswith("line 3, column ")


def test_text_in_braces_is_json_and_nothing_else() -> None:
    assert only('{"a": [1, 2.0, null]}') == {"a": [1, 2.0, None]}
    assert error_in("{a: 1}").line == 1
    assert error_in('{"a": 1},').problem == "not JSON: Extra data"
    assert "NaN" in error_in('{"a": NaN}').problem


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    assert error_in("[" * 100_000).problem == "nested too deeply"
    assert error_in("a: " + "[" * 100_000)
    assert error_in("- " * 100_000).problem == "nested too deeply"


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_and_never_crashes(text: str) -> None:
    with contextlib.suppress(YamlError):
        list(documents(text))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_json_comes_back_as_it_was_written(value: Any) -> None:
    text = json.dumps({"a": value}, ensure_ascii=True)
    assert only(text) == {"a": value}


@given(st.text(alphabet="0123456789abeEnoxyXY+-_.:~<! ", max_size=6))
def test_dumped_strings_come_back_as_strings(text: str) -> None:
    assert only(dump({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@pytest.mark.parametrize("text", ["y", "on", "1e3", "0o17", "089", "null", "~", "", "<<", "2024-01-01", "a\nb", "µ"])
def test_dumped_strings_come_back_as_strings_even_if_they_look_like_something_else(text: str) -> None:
    assert only(dump({text: text})) == {text: text}


def test_dumping_repeats_shared_values_instead_of_aliasing_them() -> None:
    shared = {"x": 1}
    assert dump({"a": shared, "b": shared}) == "a:\n  x: 1\nb:\n  x: 1\n"

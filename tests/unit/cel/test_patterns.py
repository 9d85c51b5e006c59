from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.errors import AbsorbableError
from kubesched.cel.library.strings import compile_pattern, find, find_all, matches


def found(pattern: str, text: str) -> str | None:
    return find(text, pattern) if matches(text, pattern) else None


@pytest.mark.parametrize(
    ("pattern", "text", "match"),
    [
        ("", "abc", ""),
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("a.c", "a\nc", None),
        ("(?s)a.c", "a\nc", "a\nc"),
        ("a$", "a\n", None),
        ("(?m)a$", "a\nb", "a"),
        ("(?m)^b", "a\nb", "b"),
        (r"\Ab|\Ba\z", "ba", "b"),
        ("a|ab", "ab", "a"),
        ("ab|a", "ab", "ab"),
        ("a*", "aaa", "aaa"),
        ("a*?", "aaa", ""),
        ("a+?", "aaa", "a"),
        ("(?U)a+", "aaa", "a"),
        ("a{2}", "aaa", "aa"),
        ("a{2,}", "aaaa", "aaaa"),
        ("a{1,2}", "aaa", "aa"),
        ("a{,2}", "a{,2}", "a{,2}"),
        ("[a-c]+", "xabcx", "abc"),
        ("[^a-c]+", "abxyc", "xy"),
        ("[]a]+", "a]", "a]"),
        ("[a-]+", "-a", "-a"),
        (r"[\d.]+", "v1.2", "1.2"),
        (r"[\]]", "]", "]"),
        ("[[:alpha:]]+", "1ab2", "ab"),
        ("[[:^digit:]]+", "1ab2", "ab"),
        (r"\d+\s\w+", "x12 ab_", "12 ab_"),
        (r"\D\S\W", "1ab ", "ab "),
        (r"\bfoo\b", "a foo b", "foo"),
        ("(?i)ABC", "xabc", "abc"),
        ("(?i:A)b", "ab", "ab"),
        ("(?i:A)b", "aB", None),
        ("(?i)[^a]", "A", None),
        ("(?P<n>a)(?<m>b)(?:c)", "abc", "abc"),
        (r"\Qa.b\E+", "a.b+", "a.b"),
        (r"\x41\x{42}\103\.", "ABC.", "ABC."),
        (r"\pL+\p{Nd}", "äb1", "äb1"),
        (r"\PL", "a1", "1"),
        ("(a|b)*c", "ababc", "ababc"),
    ],
)
def test_pattern_finds_what_re2_finds(pattern: str, text: str, match: str | None) -> None:
    assert found(pattern, text) == match


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[", "missing closing ]: `[`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid or unsupported Perl syntax: `(?<=`"),
        ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
        ("(?P<n a>b)", "invalid named capture: `(?P<n a>`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("((a{100}){10}){10}", "invalid repeat count: `{10}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"(\pL{30}){33}", "expression too large: ``"),
    ],
)
def test_what_re2_does_not_know_is_refused_in_the_words_of_go(pattern: str, words: str) -> None:
    with pytest.raises(AbsorbableError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == f"error parsing regexp: {words}"


def test_quoted_backslash_before_a_letter_is_no_escape() -> None:
    assert found(r"\Q\C\E", r"a\C") == r"\C"
    assert found(r"\\C", r"a\C") == r"\C"


def test_text_longer_than_most_is_searched_too() -> None:
    assert matches("a" * 1000 + "b", "b$")
    assert matches("a" * 1000, "b*$")
    assert not matches("a" * 1000, "b")


def test_all_matches_are_found_but_no_empty_one_right_behind_another() -> None:
    assert find_all("äaab", "a*") == ["", "aa", ""]
    assert find_all("ab\ncd", "(?m)^.") == ["a", "c"]
    assert find_all("a1b2", "[0-9]", 1) == ["1"]
    assert find_all("a1b2", "[0-9]", 0) == []


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*$", "(a|a)*$", "a*a*a*a*a*a*a*a*$"])
def test_pattern_that_would_take_forever_by_trying_takes_no_time(pattern: str) -> None:
    assert found(f"^{pattern}", "a" * 200 + "b") is None


PIECES = st.sampled_from(["a", "b", "ab", ".", "[ab]", "[^a]", "^", "$", r"\b"])
PATTERNS = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["?", "{2}", "{0,2}", "??"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.sampled_from(["a*", "[ab]+", "b*?", ".+?"]),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text("ab ", max_size=10))
def test_both_engines_agree_on_patterns_both_understand(pattern: str, text: str) -> None:
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    assert found(pattern, text) == (expected[0] if expected else None)


@given(st.text(alphabet="ab()[]{}*+?|^$\\.,-:1dQEpLx<P>iC", max_size=15), st.text())
def test_any_text_is_a_pattern_or_is_refused(pattern: str, text: str) -> None:
    try:
        find_all(text, pattern)
    except AbsorbableError:
        return
    find(text, pattern)

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.cel.patterns import PatternError, read_pattern


def found(pattern: str, text: str) -> str | None:
    span = read_pattern(pattern).search(text)
    return None if span is None else text[slice(*span)]


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
    "pattern",
    [
        *("(", ")", "[", "[b-a]", "*", "a**", r"\1", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", r"\y", "a{1001}", "\\"),
        *("(?P<1>a)", "[[:nope:]]", r"\p{Nope}", "((a{1000}){1000}){1000}"),
    ],
)
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        read_pattern(pattern)


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
    assert read_pattern(pattern).search(text) == (expected.span() if expected else None)


@given(st.text(alphabet="ab()[]{}*+?|^$\\.,-:1dQEpLx<P>i", max_size=15))
def test_any_text_is_a_pattern_or_is_refused(text: str) -> None:
    try:
        pattern = read_pattern(text)
    except PatternError:
        return
    pattern.search("ab1")

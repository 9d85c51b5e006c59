"""Regular expressions. RE2's own library runs them, in time linear in the text; errors are in the words of Go's."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import Mismatch, function, method

_SHORT = 256
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 4 << 20
_GO_WORDS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}
"""What Go words otherwise than RE2 does."""
_ESCAPED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
    """A pattern ready to search with; cached, for selectors repeat theirs for every device."""
    if any(escaped[1] == "C" for escaped in _ESCAPED.finditer(pattern)):
        raise _refused("invalid escape sequence", r"\C")  # any byte: Go knows only characters
    try:
        return re2.compile(_characters(pattern), _OPTIONS)
    except re2.error as error:
        words, _, part = error.args[0].decode(errors="replace").partition(": ")
        raise _refused(_GO_WORDS.get(words, words), part) from None


def _refused(words: str, part: str) -> AbsorbableError:
    return AbsorbableError(f"error parsing regexp: {words}: `{part}`")


def _characters(text: str) -> str:
    """RE2 reads UTF-8, which has no halves of surrogate pairs; Go puts the same character in their place."""
    return text if text.isascii() else _HALF_A_PAIR.sub("\ufffd", text)


@function("matches(string, string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
@method("string.matches(string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _matches_short(text, pattern) if len(text) <= _SHORT else _search(text, pattern) is not None


@lru_cache(maxsize=16384)
def _matches_short(text: str, pattern: str) -> bool:
    """Thousands of devices share a few models, so most answers are known already."""
    return _search(text, pattern) is not None


def _search(text: str, pattern: str) -> Any:
    return compile_pattern(pattern).search(_characters(text))


@method("string.find(string) -> string", price=costs.pattern)
def find(text: str, pattern: str) -> str:
    """What the pattern first matches, or nothing."""
    found = _search(text, pattern)
    return "" if found is None else str(found[0])


@method("string.findAll(string) -> list(string)", price=costs.pattern)
def find_all(text: str, pattern: str) -> list[str]:
    """Everything the pattern matches."""
    return find_some(text, pattern, -1)


@method("string.findAll(string, int) -> list(string)", price=costs.pattern)
def find_some(text: str, pattern: str, count: int) -> list[str]:
    """The first few things the pattern matches; all if the count is negative. Nothing right behind a match is none."""
    found: list[str] = []
    last_end = -1
    for each in compile_pattern(pattern).finditer(_characters(text)):
        if len(found) == count:
            break
        if each.end() > each.start() or each.start() != last_end:
            found.append(each[0])
        last_end = each.end()
    return found

"""Regular expressions of RE2's syntax, run in time linear in the text."""

from __future__ import annotations

from functools import lru_cache

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import Mismatch, function, method
from kubesched.cel.patterns import Pattern, PatternError, read_pattern

_SHORT = 256


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """A pattern ready to search with; cached, for selectors repeat theirs for every device."""
    try:
        return read_pattern(pattern)
    except PatternError as error:
        raise AbsorbableError(f"error parsing regexp: {error}") from None


@function("matches(string, string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
@method("string.matches(string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _matches_short(text, pattern) if len(text) <= _SHORT else compile_pattern(pattern).search(text) is not None


@lru_cache(maxsize=16384)
def _matches_short(text: str, pattern: str) -> bool:
    """Thousands of devices share a few models, so most answers are known already."""
    return compile_pattern(pattern).search(text) is not None


@method("string.find(string) -> string", price=costs.pattern)
def find(text: str, pattern: str) -> str:
    """What the pattern first matches, or nothing."""
    found = compile_pattern(pattern).search(text)
    return "" if found is None else text[found[0] : found[1]]


@method("string.findAll(string) -> list(string)", price=costs.pattern)
def find_all(text: str, pattern: str) -> list[str]:
    """Everything the pattern matches."""
    return find_some(text, pattern, -1)


@method("string.findAll(string, int) -> list(string)", price=costs.pattern)
def find_some(text: str, pattern: str, count: int) -> list[str]:
    """The first few things the pattern matches; all if the count is negative."""
    found: list[str] = []
    compiled, at, last_end = compile_pattern(pattern), 0, -1
    while at <= len(text) and (count < 0 or len(found) < count):
        span = compiled.search(text, at)
        if span is None:
            break
        start, end = span
        if end > start or start != last_end:
            found.append(text[start:end])
        last_end = end
        at = end if end > start else end + 1
    return found

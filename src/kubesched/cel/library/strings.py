"""Text: CEL's own methods, the strings extension and regular expressions.

RE2's own library runs the regular expressions, in time linear in the text; their errors are in the words of Go's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from kubesched.cel import costs
from kubesched.cel.errors import TOO_EXPENSIVE, AbsorbableError, CostLimitError
from kubesched.cel.formatting import format_values
from kubesched.cel.functions import Mismatch, function, functions, method, methods
from kubesched.cel.values import Value, show

_LONGEST_TEXT = 10 * costs.COST_LIMIT
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = {ord(char): f"\\{name}" for char, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"')}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SIZED = ("string", "bytes", "list(A)", "map(A, B)")

methods({f"{kind}.size() -> int": len for kind in _SIZED})
functions({f"size({kind}) -> int": len for kind in _SIZED}, mismatch=Mismatch.NAME)
methods(
    {"string.contains(string) -> bool": lambda text, part: part in text},
    price=costs.search,
    mismatch=Mismatch.PLAIN,
)
methods(
    {"string.startsWith(string) -> bool": str.startswith, "string.endsWith(string) -> bool": str.endswith},
    price=costs.scan_second,
    mismatch=Mismatch.PLAIN,
)
methods({"string.charAt(int) -> string": lambda text, at: text[_check(at, text) : at + 1]})
methods(
    {"string.indexOf(string) -> int": str.find, "string.lastIndexOf(string) -> int": str.rfind},
    price=costs.traverse_first,
)
methods(
    {
        "string.format(list(dyn)) -> string": format_values,
        "string.lowerAscii() -> string": lambda text: text.translate(_LOWER),
        "string.substring(int) -> string": lambda text, start: text[_check(start, text) :],
        "string.trim() -> string": lambda text: text.strip(_SPACE),
        "string.upperAscii() -> string": lambda text: text.translate(_UPPER),
    },
    price=costs.scan_first,
)
functions({"strings.quote(string) -> string": lambda text: f'"{text.translate(_QUOTED)}"'}, price=costs.scan_first)


def _check(at: int, text: str) -> int:
    """A place in the text, or right behind it."""
    if not 0 <= at <= len(text):
        raise AbsorbableError(f"index out of range: {at}")
    return at


@method("string.indexOf(string, int) -> int", price=costs.traverse_first)
def index_from(text: str, part: str, start: int) -> int:
    """Where the part is first, from a place on."""
    if start < 0:
        raise AbsorbableError(f"index out of range: {start}")
    return text.find(part, start) if part else min(start, len(text))


@method("string.lastIndexOf(string, int) -> int", price=costs.traverse_first)
def last_index_from(text: str, part: str, start: int) -> int:
    """Where the part is last, beginning at a place or before it."""
    if start < 0:
        raise AbsorbableError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


@method("string.substring(int, int) -> string", price=costs.scan_first)
def substring(text: str, start: int, end: int) -> str:
    """From one place up to another."""
    if start > end:
        raise AbsorbableError(f"invalid substring range. start: {start}, end: {end}")
    return text[_check(start, text) : _check(end, text)]


@method(
    "string.replace(string, string) -> string",
    "string.replace(string, string, int) -> string",
    price=costs.scan_first_twice,
)
def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """With the first few replaced; all if the count is negative."""
    _check_size(len(text) + (text.count(old) + 1) * len(new))
    return text.replace(old, new, max(count, -1))


@method(
    "string.split(string) -> list(string)", "string.split(string, int) -> list(string)", price=costs.scan_first_twice
)
def split(text: str, separator: str, count: int = -1) -> list[str]:
    """At most so many parts, the last one being the rest; characters if the separator is empty."""
    if count == 0:
        return []
    if separator:
        return text.split(separator, max(count - 1, -1))
    return [*text[: count - 1], text[count - 1 :]] if 0 < count < len(text) else list(text)


@method("list(string).join() -> string", "list(string).join(string) -> string", price=costs.scan_result_twice)
def join(parts: list[Value], separator: str = "") -> str:
    """All parts with a separator between."""
    for part in parts:
        if type(part) is not str:
            raise AbsorbableError(f"join: invalid input: {show(part)}")
    _check_size(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def _check_size(size: int) -> None:
    """Costs are paid for afterwards; a text that cannot be paid for must not be made first."""
    if size > _LONGEST_TEXT:
        raise CostLimitError(TOO_EXPENSIVE)


_SHORT_TEXT = 256
_RE2 = re2.Options()
_RE2.log_errors = False
_RE2.max_mem = 4 << 20
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


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
    """A pattern ready to search with; cached, for selectors repeat theirs for every device."""
    if any(escaped[1] == "C" for escaped in _ESCAPED.finditer(pattern)):
        raise _refusal("invalid escape sequence", r"\C")  # any byte: Go knows only characters
    try:
        return re2.compile(pattern, _RE2)
    except re2.error as error:
        text, _, part = error.args[0].decode(errors="replace").partition(": ")
        raise _refusal(_GO_WORDS.get(text, text), part) from None


def _refusal(text: str, part: str) -> AbsorbableError:
    return AbsorbableError(f"error parsing regexp: {text}: `{part}`")


@function("matches(string, string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
@method("string.matches(string) -> bool", price=costs.pattern, mismatch=Mismatch.NAME)
def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _matches_short(text, pattern) if len(text) <= _SHORT_TEXT else _search(text, pattern) is not None


@lru_cache(maxsize=16384)
def _matches_short(text: str, pattern: str) -> bool:
    """Thousands of devices share a few models, so most answers are known already."""
    return _search(text, pattern) is not None


def _search(text: str, pattern: str) -> Any:
    return compile_pattern(pattern).search(text)


@method("string.find(string) -> string", price=costs.pattern)
def find(text: str, pattern: str) -> str:
    """What the pattern first matches, or nothing."""
    match = _search(text, pattern)
    return "" if match is None else str(match[0])


@method("string.findAll(string) -> list(string)", "string.findAll(string, int) -> list(string)", price=costs.pattern)
def find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    """The first few things the pattern matches; all if the count is negative. Nothing right behind a match is none."""
    matches: list[str] = []
    last_end = -1
    for match in compile_pattern(pattern).finditer(text):
        if len(matches) == count:
            break
        if match.end() > match.start() or match.start() != last_end:
            matches.append(match[0])
        last_end = match.end()
    return matches

"""Text: CEL's own methods and the strings extension."""

from __future__ import annotations

from kubesched.cel import costs
from kubesched.cel.errors import TOO_EXPENSIVE, AbsorbableError, CostLimitError
from kubesched.cel.formatting import format_values
from kubesched.cel.functions import Mismatch, function, method
from kubesched.cel.values import Value, show

_LONGEST_TEXT = 10 * costs.COST_LIMIT
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTED |= {"\\": "\\\\", '"': '\\"'}
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@method("string.contains(string) -> bool", price=costs.search, mismatch=Mismatch.PLAIN)
def contains(text: str, part: str) -> bool:
    """Whether the part is somewhere in it."""
    return part in text


@method("string.startsWith(string) -> bool", price=costs.scan_second, mismatch=Mismatch.PLAIN)
def starts_with(text: str, prefix: str) -> bool:
    """Whether it begins so."""
    return text.startswith(prefix)


@method("string.endsWith(string) -> bool", price=costs.scan_second, mismatch=Mismatch.PLAIN)
def ends_with(text: str, suffix: str) -> bool:
    """Whether it ends so."""
    return text.endswith(suffix)


@function(
    *(f"size({kind}) -> int" for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    mismatch=Mismatch.NAME,
)
@method("string.size() -> int", "bytes.size() -> int", "list(A).size() -> int", "map(A, B).size() -> int")
def size(value: Value) -> int:
    """How many characters, bytes, elements or entries."""
    return len(value)


@method("string.charAt(int) -> string")
def char_at(text: str, at: int) -> str:
    """One character; nothing right behind the last one."""
    _check_position(text, at)
    return text[at : at + 1]


@method("string.indexOf(string) -> int", price=costs.traverse_first)
def index_of(text: str, part: str) -> int:
    """Where the part is first, or -1."""
    return text.find(part)


@method("string.indexOf(string, int) -> int", price=costs.traverse_first)
def index_of_from(text: str, part: str, start: int) -> int:
    """Where the part is first, from a place on."""
    if start < 0:
        raise AbsorbableError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return text.find(part, start)


@method("string.lastIndexOf(string) -> int", price=costs.traverse_first)
def last_index_of(text: str, part: str) -> int:
    """Where the part is last, or -1."""
    return text.rfind(part)


@method("string.lastIndexOf(string, int) -> int", price=costs.traverse_first)
def last_index_of_from(text: str, part: str, start: int) -> int:
    """Where the part is last, beginning at a place or before it."""
    if start < 0:
        raise AbsorbableError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


@method("string.lowerAscii() -> string", price=costs.scan_first)
def lower_ascii(text: str) -> str:
    """Lower case, for the letters of ASCII."""
    return text.translate(_LOWER)


@method("string.upperAscii() -> string", price=costs.scan_first)
def upper_ascii(text: str) -> str:
    """Upper case, for the letters of ASCII."""
    return text.translate(_UPPER)


@method("string.replace(string, string) -> string", price=costs.scan_first_twice)
def replace(text: str, old: str, new: str) -> str:
    """With every `old` replaced."""
    return replace_some(text, old, new, -1)


@method("string.replace(string, string, int) -> string", price=costs.scan_first_twice)
def replace_some(text: str, old: str, new: str, count: int) -> str:
    """With the first few replaced; all if the count is negative."""
    _check_size(len(text) + (text.count(old) + 1) * len(new))
    return text.replace(old, new, max(count, -1))


@method("string.split(string) -> list(string)", price=costs.scan_first_twice)
def split(text: str, separator: str) -> list[str]:
    """The parts between separators; all characters if the separator is empty."""
    return text.split(separator) if separator else list(text)


@method("string.split(string, int) -> list(string)", price=costs.scan_first_twice)
def split_some(text: str, separator: str, count: int) -> list[str]:
    """At most so many parts; the last one is the rest."""
    if count == 0:
        return []
    if count < 0:
        return split(text, separator)
    if separator:
        return text.split(separator, count - 1)
    return [*text[: count - 1], text[count - 1 :]] if len(text) > count else list(text)


@method("string.substring(int) -> string", price=costs.scan_first)
def substring(text: str, start: int) -> str:
    """From a place to the end."""
    _check_position(text, start)
    return text[start:]


@method("string.substring(int, int) -> string", price=costs.scan_first)
def substring_between(text: str, start: int, end: int) -> str:
    """From one place up to another."""
    if start > end:
        raise AbsorbableError(f"invalid substring range. start: {start}, end: {end}")
    _check_position(text, start)
    _check_position(text, end)
    return text[start:end]


@method("string.trim() -> string", price=costs.scan_first)
def trim(text: str) -> str:
    """Without white space around it."""
    return text.strip(_SPACE)


@method("string.format(list(dyn)) -> string", price=costs.scan_first)
def format_string(template: str, values: list[Value]) -> str:
    """With the clauses of the template replaced."""
    return format_values(template, values)


@function("strings.quote(string) -> string", price=costs.scan_first)
def quote(text: str) -> str:
    """In double quotes, with special characters escaped."""
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


@method("list(string).join() -> string", price=costs.scan_result_twice)
def join(parts: list[Value]) -> str:
    """All parts in a row."""
    return join_with(parts, "")


@method("list(string).join(string) -> string", price=costs.scan_result_twice)
def join_with(parts: list[Value], separator: str) -> str:
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


def _check_position(text: str, at: int) -> None:
    if not 0 <= at <= len(text):
        raise AbsorbableError(f"index out of range: {at}")

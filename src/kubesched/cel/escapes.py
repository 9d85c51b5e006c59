"""The text inside quotes: escape sequences of string and bytes literals."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\\(?:(?P<char>[abfnrtv\"'\\?`])|(?P<octal>[0-3][0-7]{2})|[xX](?P<hex>[0-9a-fA-F]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
_CHARS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class EscapeError(ValueError):
    """The literal stands for no value."""


def read_string(quoted: str) -> str:
    """The value of a string literal, quotes included in the argument."""
    body, raw = _unquoted(quoted)
    return body if raw else _SEQUENCE.sub(_character, body)


def read_bytes(quoted: str) -> bytes:
    """The value of a bytes literal, without its b: \\xff is one byte there, not a character."""
    body, raw = _unquoted(quoted)
    if raw:
        return body.encode()
    value, at = bytearray(), 0
    for sequence in _SEQUENCE.finditer(body):
        value += body[at : sequence.start()].encode()
        at = sequence.end()
        if sequence["short"] or sequence["long"]:
            raise EscapeError("unable to unescape string")
        code = ord(_character(sequence))
        value.append(code)
    return bytes(value + body[at:].encode())


def _unquoted(quoted: str) -> tuple[str, bool]:
    raw = quoted[0] in "rR"
    text = quoted[1:] if raw else quoted
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(sequence: re.Match[str]) -> str:
    if char := sequence["char"]:
        return _CHARS.get(char, char)
    if octal := sequence["octal"]:
        return chr(int(octal, 8))
    code = int(sequence["hex"] or sequence["short"] or sequence["long"], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise EscapeError("invalid unicode code point")
    return chr(code)

"""Text to tokens, after CEL's grammar, and what string and bytes literals stand for."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubesched.cel.errors import Issue

END = "<EOF>"

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED = (
    r'[rR]"""(?s:.*?)"""',
    r"[rR]'''(?s:.*?)'''",
    r'[rR]"[^"\n\r]*"',
    r"[rR]'[^'\n\r]*'",
    rf'"""(?:{_ESCAPE}|[^\\])*?"""',
    rf"'''(?:{_ESCAPE}|[^\\])*?'''",
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
    rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
)
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<skip>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{'|'.join(_QUOTED)}))",
            rf"(?P<STRING>{'|'.join(_QUOTED)})",
            r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<sign>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])",
        )
    )
)
_OPENING_QUOTE = re.compile(r"[bB]?[rR]?(\"\"\"|'''|[\"'])")
_NEVER_CLOSED = re.compile(rf"(?:{_ESCAPE}|[^\\\n\r])*")
_HALF_A_SIGN = "&|="
"""CEL has these signs only doubled: a single one is reported together with the character after it."""
_KEYWORDS = frozenset({"true", "false", "null", "in"})


class Token(NamedTuple):
    """A word of the expression. `kind` is the sign or keyword itself, or the name of its class."""

    kind: str
    text: str
    offset: int

    @property
    def shown(self) -> str:
        """As error messages quote it."""
        return self.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def tokenize(text: str) -> tuple[list[Token], list[Issue]]:
    """All tokens, closed by an END token, and an issue for every character that starts none."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            end = _unrecognized_until(text, at)
            shown = Token("", text[at:end], at).shown
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{shown}'"))
            at = end
            continue
        kind, word = match.lastgroup or "", match[0]
        if kind == "sign" or word in _KEYWORDS:
            kind = word
        if kind != "skip":
            tokens.append(Token(kind, word, at))
        at = match.end()
    tokens.append(Token(END, END, len(text)))
    return tokens, issues


def _unrecognized_until(text: str, start: int) -> int:
    """A string that is never closed is swallowed up to where it can no longer be one; else one character."""
    quote = _OPENING_QUOTE.match(text, start)
    if quote is None:
        return min(start + (2 if text[start] in _HALF_A_SIGN else 1), len(text))
    if len(quote[1]) == 3:
        return len(text)
    body = _NEVER_CLOSED.match(text, quote.end())
    end = body.end() if body else quote.end()
    return min(end + (2 if text[end : end + 1] == "\\" else 1), len(text))


_SEQUENCE = re.compile(_ESCAPE)
_CHARS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class EscapeError(ValueError):
    """The literal stands for no value."""


def read_string(quoted: str) -> str:
    """The value of a string literal, quotes included in the argument."""
    body, raw = _unquote(quoted)
    return body if raw else _SEQUENCE.sub(_character, body)


def read_bytes(quoted: str) -> bytes:
    """The value of a bytes literal, without its b: \\xff is one byte there, not a character."""
    body, raw = _unquote(quoted)
    if raw:
        return body.encode()
    value, at = bytearray(), 0
    for sequence in _SEQUENCE.finditer(body):
        value += body[at : sequence.start()].encode()
        at = sequence.end()
        if sequence[0][1] in "uU":
            raise EscapeError("unable to unescape string")
        value.append(ord(_character(sequence)))
    return bytes(value + body[at:].encode())


def _unquote(quoted: str) -> tuple[str, bool]:
    raw = quoted[0] in "rR"
    text = quoted[1:] if raw else quoted
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(sequence: re.Match[str]) -> str:
    kind, digits = sequence[0][1], sequence[0][2:]
    if not digits:
        return _CHARS.get(kind, kind)
    code = int(digits, 16) if kind in "xXuU" else int(kind + digits, 8)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise EscapeError("invalid unicode code point")
    return chr(code)

"""RE2's syntax of regular expressions. Python's `re` reads another one, and can take forever to match."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from kubesched.cel.automaton import Assertion, Chain, Characters, Choice, Part, Pattern, PatternError, Place, Repeat

__all__ = ["Pattern", "PatternError", "read_pattern"]

Ranges = tuple[tuple[str, str], ...]
Test = Callable[[str], bool]

_MOST_REPEATS = 1000
_DEEPEST = 100
_SHORTHANDS: dict[str, Ranges] = {
    "d": (("0", "9"),),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
}
_NAMED: dict[str, Ranges] = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": _SHORTHANDS["w"],
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES = {"A": Place.TEXT_START, "z": Place.TEXT_END, "b": Place.BOUNDARY, "B": Place.NO_BOUNDARY}


def read_pattern(text: str) -> Pattern:
    """Parse and compile a regular expression."""
    reader = _Reader(text)
    part = reader.choice()
    if not reader.at_end:
        raise PatternError(f"unexpected ): `{text}`")
    return Pattern(part)


def _in_ranges(ranges: Ranges) -> Test:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        only = ranges[0][0]
        return lambda char: char == only
    return lambda char: any(low <= char <= high for low, high in ranges)


def _inverted(test: Test) -> Test:
    return lambda char: not test(char)


def _any_of(tests: Iterable[Test]) -> Test:
    all_tests = tuple(tests)
    return all_tests[0] if len(all_tests) == 1 else lambda char: any(test(char) for test in all_tests)


def _ignoring_case(test: Test) -> Test:
    return lambda char: test(char) or test(char.lower()) or test(char.upper())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = frozenset[str]()
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self, ahead: str) -> bool:
        return self._text.startswith(ahead, self._at)

    def _take(self, wanted: str) -> bool:
        if self._peek(wanted):
            self._at += len(wanted)
            return True
        return False

    def _next(self) -> str:
        if self.at_end:
            raise PatternError("trailing backslash at end of expression: ``")
        self._at += 1
        return self._text[self._at - 1]

    def choice(self) -> Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternError(f"expression nests too deeply: `{self._text}`")
        outer = self._flags
        parts = [self._chain()]
        while self._take("|"):
            parts.append(self._chain())
        self._flags = outer
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _chain(self) -> Part:
        parts: list[Part] = []
        while not (self.at_end or self._peek("|") or self._peek(")")):
            if self._take("\\Q"):
                literal, _, _ = self._text[self._at :].partition("\\E")
                self._at = min(self._at + len(literal) + 2, len(self._text))
                parts.extend(self._characters(_in_ranges(((char, char),))) for char in literal)
                if literal:
                    parts[-1] = self._repeated(parts[-1], self._at)
                continue
            start = self._at
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part, start))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _characters(self, test: Test) -> Part:
        return Characters(_ignoring_case(test) if "i" in self._flags else test)

    def _atom(self) -> Part | None:
        start = self._at
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._characters(self._class(start))
            case ".":
                return Characters((lambda char: True) if "s" in self._flags else (lambda char: char != "\n"))
            case "^":
                return Assertion(Place.LINE_START if "m" in self._flags else Place.TEXT_START)
            case "$":
                return Assertion(Place.LINE_END if "m" in self._flags else Place.TEXT_END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise PatternError(f"missing argument to repetition operator: `{char}`")
            case _:
                return self._characters(_in_ranges(((char, char),)))

    def _repeated(self, part: Part, start: int) -> Part:
        repeats = 0
        while (bounds := self._bounds()) is not None:
            repeats += 1
            greedy = self._take("?") is ("U" in self._flags)
            if repeats > 1:
                raise PatternError(f"invalid nested repetition operator: `{self._text[start : self._at]}`")
            part = Repeat(part, bounds[0], bounds[1], greedy)
        return part

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        end = self._text.find("}", self._at)
        if not self._peek("{") or end < 0:
            return None
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        spelled = self._text[self._at : end + 1]
        if max(len(low), len(high)) > 4:
            raise PatternError(f"invalid repeat count: `{spelled}`")
        least = int(low)
        most = least if not comma else int(high) if high else None
        if least > _MOST_REPEATS or (most is not None and not least <= most <= _MOST_REPEATS):
            raise PatternError(f"invalid repeat count: `{spelled}`")
        self._at = end + 1
        return least, most

    def _group(self) -> Part | None:
        outer = self._flags
        if self._take("?"):
            if self._take("P<") or (not (self._peek("<=") or self._peek("<!")) and self._take("<")):
                name, closing, _ = self._text[self._at :].partition(">")
                if not closing or not name.isidentifier():
                    raise PatternError(f"invalid named capture: `{self._text}`")
                self._at += len(name) + 1
            elif self._set_flags() == ")":
                return None
        part = self.choice()
        if not self._take(")"):
            raise PatternError(f"missing closing ): `{self._text}`")
        self._flags = outer
        return part

    def _set_flags(self) -> str:
        """`(?i)` changes flags to the end of the group around it, `(?i:...)` for its own; gives how it ended."""
        flags, negative, start = set(self._flags), False, self._at - 2
        while not self.at_end:
            sign = self._next()
            if sign in ":)":
                self._flags = frozenset(flags)
                return sign
            if sign == "-" and not negative:
                negative = True
            elif sign in "imsU":
                flags.symmetric_difference_update({sign} if (sign in flags) is negative else ())
            else:
                break
        raise PatternError(f"invalid or unsupported Perl syntax: `{self._text[start : self._at]}`")

    def _escape(self) -> Part:
        start = self._at - 1
        char = self._next()
        if char in _PLACES:
            return Assertion(_PLACES[char])
        if test := self._shorthand(char):
            return self._characters(test)
        code = self._escaped_character(char, start)
        return self._characters(_in_ranges(((code, code),)))

    def _shorthand(self, char: str) -> Test | None:
        if char.lower() in _SHORTHANDS:
            test = _in_ranges(_SHORTHANDS[char.lower()])
            return test if char.islower() else _inverted(test)
        if char not in ("p", "P"):
            return None
        name = self._next()
        if name == "{":
            name, _, _ = self._text[self._at :].partition("}")
            self._at += len(name) + 1
        negative = (char == "P") is not name.startswith("^")
        name = name.removeprefix("^")
        if name not in _CATEGORIES:
            raise PatternError(f"invalid character class range: `\\{char}{{{name}}}`")
        test = _of_category(name)
        return _inverted(test) if negative else test

    def _escaped_character(self, char: str, start: int) -> str:
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            digits = self._next()
            if digits == "{":
                digits, _, _ = self._text[self._at :].partition("}")
                self._at += len(digits) + 1
            elif not self.at_end:
                digits += self._next()
            if digits and len(digits) <= 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
                return chr(min(int(digits, 16), 0x10FFFF))
        elif char in "01234567" and (char == "0" or self._text[self._at : self._at + 1].isdecimal()):
            digits = char
            while len(digits) < 3 and not self.at_end and self._text[self._at] in "01234567":
                digits += self._next()
            return chr(int(digits, 8))
        elif not char.isalnum():
            return char
        raise PatternError(f"invalid escape sequence: `{self._text[start : self._at]}`")

    def _class(self, start: int) -> Test:
        negative = self._take("^")
        tests: list[Test] = []
        first = True
        while first or not self._peek("]"):
            if self.at_end:
                raise PatternError(f"missing closing ]: `{self._text[start:]}`")
            first = False
            tests.append(self._named_class() or self._class_range())
        self._take("]")
        test = _any_of(tests)
        return _inverted(_ignoring_case(test) if "i" in self._flags else test) if negative else test

    def _named_class(self) -> Test | None:
        if self._peek("[:"):
            name, closing, _ = self._text[self._at + 2 :].partition(":]")
            bare = name.removeprefix("^")
            if closing:
                if bare not in _NAMED:
                    raise PatternError(f"invalid character class range: `[:{name}:]`")
                self._at += len(name) + 4
                test = _in_ranges(_NAMED[bare])
                return _inverted(test) if name.startswith("^") else test
        before = self._at
        if self._take("\\"):
            if shorthand := self._shorthand(self._next()):
                return shorthand
            self._at = before
        return None

    def _class_range(self) -> Test:
        start = self._at
        low = high = self._class_character()
        if self._peek("-") and not self._peek("-]") and self._at + 1 < len(self._text):
            self._take("-")
            high = self._class_character()
        if high < low:
            raise PatternError(f"invalid character class range: `{self._text[start : self._at]}`")
        return _in_ranges(((low, high),))

    def _class_character(self) -> str:
        start = self._at
        char = self._next()
        return self._escaped_character(self._next(), start) if char == "\\" else char


_SUBCATEGORIES = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "S": "mcko", "Z": "slp", "C": "cf"}
_CATEGORIES = frozenset(major + minor for major, minors in _SUBCATEGORIES.items() for minor in ("", *minors))


def _of_category(name: str) -> Test:
    return lambda char: unicodedata.category(char).startswith(name)

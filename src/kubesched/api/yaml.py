"""YAML or JSON text to plain Python values, read as Kubernetes reads it; and back to YAML.

That is YAML 1.1 in Go's dialect: `yes`, `on` and `y` are booleans, timestamps stay strings, base 60 does not exist,
and a key given twice is a mistake rather than a silent overwrite.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml: slower, same answers
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_STANDARD = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w{2}\\u[dD][c-fC-F]\w{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_TYPES_OF_TAGS: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "null": (type(None),),
    "timestamp": (str,),
}
_MOST_BY_ALIASES = 256 << 20
"""Characters that aliases may make of one document, unless the caller says less."""
_OVERHEAD = 8
"""Characters that each value counts besides its text."""
_OPEN: Any = object()  # the value of an anchor while it is being read


class YamlError(ValueError):
    """Text that is not YAML (or JSON) as Kubernetes reads it. Lines and columns count from 1; 0 is unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(where + problem)


class Document(NamedTuple):
    """One document of a stream, and the line it starts on."""

    value: Any
    line: int


def documents(text: str, *, strict: bool = False, most_by_aliases: int = _MOST_BY_ALIASES) -> Iterator[Document]:
    """The documents in the text, one by one: each is parsed only when it is asked for.

    Text that begins with a brace or a bracket is JSON, and then it is one document. Where Kubernetes decodes
    `strict`ly, a key that `<<` brings along counts as given, so that it cannot be overridden. Aliases make a document
    larger than its text: by no more than `most_by_aliases` characters.
    """
    start = text.lstrip()
    if start.startswith(("{", "[")):
        yield Document(_json(text), text.count("\n", 0, len(text) - len(start)) + 1)
    else:
        yield from _yaml(text, strict, most_by_aliases)


def _yaml(text: str, strict: bool = False, most_by_aliases: int = _MOST_BY_ALIASES) -> Iterator[Document]:
    try:
        loader = _Loader(text)
        try:
            while not loader.check_event(yaml.StreamEndEvent):
                event: Any = loader.get_event()
                line = event.start_mark.line + 1
                if isinstance(event, yaml.DocumentStartEvent):
                    _check_version(event)
                if isinstance(event, yaml.NodeEvent):
                    yield Document(_Reader(loader, strict, most_by_aliases).value(event), line)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(problem, *((mark.line + 1, mark.column + 1) if mark else ())) from error
    except yaml.reader.ReaderError as error:
        raise _unreadable(text, error) from error
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise YamlError("nested too deeply") from error


def _check_version(event: yaml.DocumentStartEvent) -> None:
    """Go's parser refuses other versions, though it would read the newer ones no differently."""
    if event.version not in (None, (1, 1)):
        _fail(f"%YAML {'.'.join(map(str, event.version))} is not read by Kubernetes, only version 1.1 is", event)


def _unreadable(text: str, error: yaml.reader.ReaderError) -> YamlError:
    """A character that YAML does not allow. Its position is found here: the parsers count in different ways."""
    character = chr(error.character) if isinstance(error.character, int) and error.character >= 0 else ""
    at = text.find(character) if character else -1
    if at < 0:
        return YamlError(" ".join(str(error).split()))
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return YamlError(f"{character!r} is not a character that YAML allows", line, column)


class _Reader:
    """Builds the value of one document from parser events.

    Not from PyYAML's nodes: composing those crashes the interpreter on text that is nested deeply enough.
    """

    def __init__(self, loader: Any, strict: bool, most_by_aliases: int) -> None:
        self._next = loader.get_event
        self._strict = strict
        self._anchors: dict[str, tuple[Any, int]] = {}
        """Values, and their sizes without aliases."""
        self._size = 0
        self._left_for_aliases = most_by_aliases

    def value(self, event: Any) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        start, anchor = self._size, event.anchor
        self._size += _OVERHEAD
        if anchor:
            self._anchors[anchor] = (_OPEN, 0)
        if isinstance(event, yaml.ScalarEvent):
            self._size += len(event.value)
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence()
        else:
            value = self._mapping()
        if anchor:
            self._anchors[anchor] = (value, self._size - start)
        return value

    def _alias(self, event: Any) -> Any:
        value, size = self._anchors.get(event.anchor, (None, 0))
        if not size:
            _fail(f"anchor &{event.anchor} " + ("contains itself" if value is _OPEN else "is not defined"), event)
        self._size += size
        self._left_for_aliases -= size
        if self._left_for_aliases < 0:
            _fail("aliases make too much of this document", event)
        return value

    def _sequence(self) -> list[Any]:
        items = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self.value(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        merge = None
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if _is_merge(event):
                merge = event
                merged = self._join(merged, self._merge(self._next()), merge)
                continue
            key = self._key(event)
            if key in own:
                _fail_twice(key, event)
            own[key] = self.value(self._next())
        return self._join(own, merged, merge) if merge else own

    def _merge(self, event: Any) -> dict[str, Any]:
        value = self.value(event)
        merged: dict[str, Any] = {}
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                _fail("<< merges a mapping or a list of mappings", event)
            merged = self._join(merged, source, event)
        return merged

    def _join(self, own: dict[str, Any], merged: dict[str, Any], event: Any) -> dict[str, Any]:
        """The own keys of a mapping go before those that `<<` merges; strictly, no key may be in both."""
        if self._strict and (twice := next((key for key in merged if key in own), None)) is not None:
            _fail_twice(twice, event)
        return {**merged, **own}

    def _key(self, event: Any) -> str:
        """The name of a field: a scalar of another type is written as in JSON."""
        key = self.value(event)
        if isinstance(key, dict | list) or key is None:
            _fail("a key must be a string", event)
        return key if isinstance(key, str) else json.dumps(key)


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and _is_plain(event)


def _is_plain(event: Any) -> bool:
    return event.tag is None and bool(event.implicit[0])


def _scalar(event: Any) -> Any:
    """The value of a scalar; JSON has no word for infinities and NaN, so neither has Kubernetes."""
    tag = (event.tag or "").removeprefix(_STANDARD)
    if tag == "binary":
        return _binary(event)
    if not _is_plain(event) and tag not in _TYPES_OF_TAGS:
        return event.value
    value = _plain(event.value)
    if tag and type(value) not in _TYPES_OF_TAGS[tag]:
        _fail(f'"{event.value}" is not a !!{tag}', event)
    if isinstance(value, float) and not math.isfinite(value):
        _fail(f"{event.value} cannot be written in JSON", event)
    return value


@lru_cache(maxsize=16384)
def _plain(text: str) -> Any:
    """The value of an unquoted scalar. Cached: manifests repeat themselves."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    try:
        if _INTEGER.fullmatch(digits):
            return _integer(digits, text)
        if _FLOAT.fullmatch(digits):
            return _number(float(digits), text)
    except ValueError:  # more digits than Python converts
        return text
    return text


def _integer(digits: str, text: str) -> int | float | str:
    """An integer of up to 64 bits. A longer one is a float in Go, if it is decimal, and otherwise a string."""
    unsigned = digits.lstrip("+-")
    is_old_octal = len(unsigned) > 1 and unsigned[0] == "0" and unsigned[1].isdigit()
    number = int(digits, 8 if is_old_octal else 0)
    if -(2**63) <= number < 2**64:
        return number
    return _number(float(digits), text) if _FLOAT.fullmatch(digits) else text


def _number(value: float, text: str) -> int | float | str:
    """Go writes a whole float to JSON without a point, so `1e3` may stand where an integer is wanted.

    It writes no more digits than tell the float from its neighbours, and zeros after them.
    """
    if math.isinf(value):
        return text
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 1e21 else value


def _binary(event: Any) -> str:
    try:
        return base64.b64decode("".join(event.value.split()), validate=True).decode()
    except ValueError:
        _fail("!!binary is not base64 of UTF-8 text", event)


def _fail_twice(key: str, event: Any) -> NoReturn:
    _fail(f"key {json.dumps(key, ensure_ascii=False)} is given twice", event)


def _fail(problem: str, event: Any) -> NoReturn:
    mark = event.start_mark
    raise YamlError(problem, mark.line + 1, mark.column + 1)


class _GivenTwiceError(ValueError):
    """A JSON object has a key twice."""


def _json(text: str) -> Any:
    try:
        return json.loads(
            _with_whole_characters(text), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise YamlError(f"not JSON: {error.msg}", error.lineno, error.colno) from error
    except _GivenTwiceError as error:
        raise YamlError(str(error), *_position_of_repeat(text)) from error
    except RecursionError as error:
        raise YamlError("nested too deeply") from error
    except ValueError as error:
        raise YamlError(f"not JSON: {error}") from error


def _with_whole_characters(text: str) -> str:
    """The JSON with U+FFFD, as Go has it, for each half of a surrogate pair without its other half."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _GivenTwiceError(f"key {json.dumps(repeated, ensure_ascii=False)} is given twice")
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _position_of_repeat(text: str) -> tuple[int, int]:
    """Python's JSON decoder keeps no positions; JSON is YAML, and the YAML parser does."""
    try:
        list(_yaml(text))
    except YamlError as error:
        return error.line, error.column
    return 0, 0


def dump(value: Any) -> str:
    """Plain values as YAML that reads back the same, with keys in order."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that are none without quotes in Go's dialect, such as `y` or `1e3`."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        is_safe = isinstance(_plain(data), str)
        return self.represent_scalar(_STANDARD + "str", data, style=None if is_safe else '"')


_Dumper.add_representer(str, _Dumper.represent_str)

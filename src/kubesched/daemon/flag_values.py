"""Types of flag values: how each is read from text, combined when repeated, and shown.

Errors are worded as those of Go programs, which scripts and people know.
"""

from __future__ import annotations

import csv
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.api.duration import Duration
from kubesched.api.quantity import QUANTITY_WORDS, QuantityError, parse_quantity

_MAX_FLOAT32 = 3.4028235e38
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[0-9]+)")


@dataclass(frozen=True, slots=True)
class CertKey:
    """A certificate and its key, and the host names it is for; none means those in the certificate."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.cert_file},{self.key_file}" + (f":{','.join(self.names)}" if self.names else "")


@dataclass(frozen=True, slots=True)
class ModuleLevel:
    """Files whose name matches the pattern log up to this level."""

    pattern: str
    level: int


@dataclass(frozen=True, slots=True)
class FlagType:
    """A type of value. `add` combines the value of a flag with that of the same flag earlier on the command line."""

    name: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str
    add: Callable[[Any, Any], Any] | None = None
    without_value: str | None = None
    """The value of a flag that is given without one; None if a value is required."""
    is_quoted: bool = False
    """Whether usage shows the default in quotes."""


def parse_bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        complaint = f'strconv.ParseInt: parsing "{text}"'
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"{complaint}: invalid syntax")
        sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        value = int(sign + digits, 8 if octal else 0)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(f"{complaint}: value out of range")
        return value

    return parse


def _level(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) >= 2**31:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _float(text: str) -> float:
    complaint = f'strconv.ParseFloat: parsing "{text}"'
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{complaint}: invalid syntax") from None
    if abs(value) > _MAX_FLOAT32 and any(character.isdigit() for character in text):
        raise ValueError(f"{complaint}: value out of range")
    return value


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError:
        problem = "missing unit in" if re.fullmatch(r"[+-]?[0-9.]*[0-9]", text) else "invalid"
        raise ValueError(f'time: {problem} duration "{text}"') from None


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text.strip()}"') from None


def _quantity(text: str) -> int:
    try:
        return parse_quantity(text).value()
    except QuantityError:
        raise ValueError(QUANTITY_WORDS) from None


def _fields(text: str) -> tuple[str, ...]:
    """Comma-separated; fields may be quoted, as in CSV."""
    try:
        return tuple(next(csv.reader([text], strict=True), ()))
    except csv.Error as error:
        raise ValueError(f"parse error on line 1: {error}") from None


def _show_list(values: tuple[Any, ...]) -> str:
    return f"[{','.join(str(value) for value in values)}]"


def _integers(text: str) -> tuple[int, ...]:
    return tuple(_integer(32)(field) for field in text.split(","))


def _mapping(text: str) -> dict[str, str]:
    fields = (text.strip('"'),) if text.count("=") == 1 else _fields(text)
    pairs = [field.partition("=") for field in fields]
    for field, (_, equals, _) in zip(fields, pairs):
        if not equals:
            raise ValueError(f"{field} must be formatted as key=value")
    return {key: value for key, _, value in pairs}


def _show_mapping(values: Mapping[str, str]) -> str:
    return f"[{','.join(f'{key}={value}' for key, value in values.items())}]"


def _multimap(text: str) -> dict[str, tuple[str, ...]]:
    """`component:value`, or only a value."""
    by_component: dict[str, tuple[str, ...]] = {}
    for pair in filter(None, text.split(",")):
        component, colon, value = pair.partition(":")
        key, value = (component.strip(), value.strip()) if colon else ("", component.strip())
        by_component[key] = (*by_component.get(key, ()), value)
    return by_component


def _add_multimap(old: Mapping[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {key: (*old.get(key, ()), *new.get(key, ())) for key in {**old, **new}}


def _show_multimap(values: Mapping[str, tuple[str, ...]]) -> str:
    return ",".join(f"{key}:{value}" for key in sorted(values) for value in values[key])


def _cert_keys(text: str) -> tuple[CertKey, ...]:
    files, colon, names = (part.strip() for part in text.partition(":"))
    if colon and not names:
        raise ValueError("empty names list is not allowed")
    cert_file, comma, key_file = (file.strip() for file in files.partition(","))
    if not comma or "," in key_file:
        raise ValueError("expected comma separated certificate and key file paths")
    return (CertKey(cert_file, key_file, tuple(name.strip() for name in names.split(",")) if names else ()),)


def _module_levels(text: str) -> tuple[ModuleLevel, ...]:
    return tuple(_module_level(part) for part in text.split(",") if part)


def _module_level(text: str) -> ModuleLevel:
    pattern, _, level = text.partition("=")
    if text.count("=") != 1 or not pattern or not level:
        raise ValueError(f'"{text}" does not have the pattern=N format')
    try:
        return ModuleLevel(pattern, _level(level))
    except ValueError as error:
        raise ValueError(f'parsing verbosity in "{text}": {error}') from None


def _version(text: str) -> str:
    """`true`, `false`, `raw`, or a version to report instead of the real one."""
    return text if text == "raw" or text.startswith("v") else str(parse_bool(text)).lower()


MULTIMAP = FlagType("colonSeparatedMultimapStringString", _multimap, _show_multimap, _add_multimap)
_TYPES = (
    FlagType("string", str, is_quoted=True),
    FlagType("bool", parse_bool, lambda value: str(value).lower(), without_value="true"),
    FlagType("int", _integer(64)),
    FlagType("int32", _integer(32)),
    FlagType("float32", _float, "{:g}".format),
    FlagType("duration", _duration),
    FlagType("ip", _ip),
    FlagType("quantity", _quantity),
    FlagType("strings", _fields, _show_list, lambda old, new: (*old, *new)),
    FlagType("int32Slice", _integers, _show_list, lambda old, new: (*old, *new)),
    FlagType("stringToString", _mapping, _show_mapping, lambda old, new: {**old, **new}),
    MULTIMAP,
    FlagType("namedCertKey", _cert_keys, lambda pairs: f"[{';'.join(map(str, pairs))}]", lambda old, new: (*old, *new)),
    FlagType("Level", _level),
    FlagType(
        "pattern=N,...", _module_levels, lambda levels: ",".join(f"{each.pattern}={each.level}" for each in levels)
    ),
    FlagType("version", _version, without_value="true"),
)
TYPES = {flag_type.name: flag_type for flag_type in _TYPES}

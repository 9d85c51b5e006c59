"""How names, label keys and label values must be written, in the words of apimachinery's validation."""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_key = re.compile(_KEY).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch

Reasons = tuple[str, ...]
"""What is wrong with a name; empty if nothing is."""


def _pattern(words: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


_ENDS = "and must start and end with an alphanumeric character"
_LABEL_WORDS = _pattern(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_WORDS = _pattern(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_WORDS = _pattern(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_KEY_WORDS = _pattern(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}", _KEY, "MyName", "my.name", "123-abc"
)
_VALUE_WORDS = _pattern(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_WORDS = _pattern(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def subdomain(name: str) -> Reasons:
    """Most names: of pods, nodes, claims, ..."""
    if _is_subdomain(name) and len(name) <= 253:
        return ()
    return _reasons((len(name) > 253, _too_long(253)), (not _is_subdomain(name), _SUBDOMAIN_WORDS))


def label(name: str) -> Reasons:
    """Names that become part of a DNS name: of containers, namespaces, volumes, ..."""
    if _is_label(name) and len(name) <= 63:
        return ()
    words = "must not contain dots" if _is_subdomain(name) else _LABEL_WORDS
    return _reasons((len(name) > 63, _too_long(63)), (not _is_label(name), words))


def label_1035(name: str) -> Reasons:
    """Names that must not begin with a digit."""
    return _reasons((len(name) > 63, _too_long(63)), (not _is_label_1035(name), _LABEL_1035_WORDS))


@lru_cache(maxsize=4096)
def label_key(key: str) -> Reasons:
    """A label's key, or anything else that is a qualified name: [domain/]name."""
    reasons: list[str] = []
    parts = key.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_KEY_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    if len(parts) == 2:
        prefix = parts[0]
        reasons += [f"prefix part {reason}" for reason in (subdomain(prefix) if prefix else ("must be non-empty",))]
    name = parts[-1]
    if not name:
        reasons.append("name part must be non-empty")
    elif len(name) > 63:
        reasons.append(f"name part {_too_long(63)}")
    if not _is_key(name):
        reasons.append(f"name part {_KEY_WORDS}")
    return tuple(reasons)


@lru_cache(maxsize=4096)
def label_value(value: str) -> Reasons:
    return _reasons((len(value) > 63, _too_long(63)), (not _is_value(value), _VALUE_WORDS))


def path_segment(name: str) -> Reasons:
    """Names of roles and their bindings, which need only be a part of a path."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{sign}'" for sign in "/%" if sign in name)


def config_key(key: str) -> Reasons:
    """A key of a ConfigMap or a Secret."""
    if len(key) > 253:
        return ("must be no more than 253 characters",)
    if key in (".", ".."):
        return (f"must not be '{key}'",)
    if key.startswith(".."):
        return ("must not start with '..'",)
    return _reasons((not _is_config_key(key), _CONFIG_KEY_WORDS))


def port_name(name: str) -> Reasons:
    """The name of a port, as IANA writes them."""
    return _reasons(
        (len(name) > 15, "must be no more than 15 characters"),
        (not _is_port_name(name), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (not any("a" <= sign <= "z" for sign in name), "must contain at least one letter (a-z)"),
        ("--" in name, "must not contain consecutive hyphens"),
        (name.startswith("-") or name.endswith("-"), "must not begin or end with a hyphen"),
    )


def port_number(number: int) -> Reasons:
    return () if 1 <= number <= 65535 else ("must be between 1 and 65535, inclusive",)


def port(name_or_number: str | int | None) -> Reasons:
    """A port that is named or numbered."""
    return port_name(name_or_number) if isinstance(name_or_number, str) else port_number(name_or_number or 0)


def _reasons(*checks: tuple[bool, str]) -> Reasons:
    return tuple(reason for is_wrong, reason in checks if is_wrong)

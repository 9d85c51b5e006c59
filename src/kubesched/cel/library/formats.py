"""Named formats: what makes a text a good label, name, URI and so on."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from kubesched.cel import costs, types
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, functions, method, represent
from kubesched.cel.library.network import to_url
from kubesched.cel.library.times import to_timestamp
from kubesched.cel.values import NONE, Opaque, Optional, Value

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
_USED = "regex used for validation is"
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', {_USED} '{_LABEL}')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', {_USED} '{_SUBDOMAIN}')"
)
_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', {_USED} '{_LABEL_1035}')"
)
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', {_USED} '{_NAME}')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', {_USED} '({_NAME})?')"
)


class Format(msgspec.Struct, Opaque, frozen=True):
    """A named format; two of one name are the same."""

    name: str


represent(types.FORMAT, Format)
Check = Callable[[str], list[str]]


def _spell(pattern: str, longest: int, problem: str, *, prefix: bool = False) -> Check:
    """A check by regular expression and length; a prefix, as of generateName, may end with a dash."""
    compiled = re.compile(pattern)

    def check(text: str) -> list[str]:
        body = text[:-1] + "a" if prefix and text.endswith("-") else text
        problems = [f"must be no more than {longest} bytes"] if len(body.encode()) > longest else []
        if len(body) > 10 * longest or compiled.fullmatch(body):
            return problems
        return [*problems, problem]

    return check


def _by(read: Callable[[str], object], problem: str | None = None) -> Check:
    """A check that tries to read the text."""

    def check(text: str) -> list[str]:
        try:
            read(text)
        except (AbsorbableError, binascii.Error, ValueError) as error:
            return [problem or str(error)]
        return []

    return check


def _matching(pattern: re.Pattern[str], problem: str) -> Check:
    return lambda text: [] if pattern.fullmatch(text) else [problem]


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or "/" in prefix):
        where = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [_NAME_WORDS.replace("name part", "a qualified name") + f" {where}"]
    problems = [f"prefix part {problem}" for problem in _CHECKS["dns1123Subdomain"](prefix)] if slash else []
    if not name:
        return [*problems, "name part must be non-empty", _NAME_WORDS]
    wrong = _NAME_CHECK(name)
    return [*problems, *(problem if problem == _NAME_WORDS else f"name part {problem}" for problem in wrong)]


_NAME_CHECK = _spell(_NAME, 63, _NAME_WORDS)
_CHECKS: dict[str, Check] = {
    "dns1123Label": _spell(_LABEL, 63, _LABEL_WORDS),
    "dns1123LabelPrefix": _spell(_LABEL, 63, _LABEL_WORDS, prefix=True),
    "dns1123Subdomain": _spell(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS),
    "dns1123SubdomainPrefix": _spell(_SUBDOMAIN, 253, _SUBDOMAIN_WORDS, prefix=True),
    "dns1035Label": _spell(_LABEL_1035, 63, _LABEL_1035_WORDS),
    "dns1035LabelPrefix": _spell(_LABEL_1035, 63, _LABEL_1035_WORDS, prefix=True),
    "qualifiedName": _qualified_name,
    "labelValue": _spell(f"({_NAME})?", 63, _VALUE_WORDS),
    "uri": _by(to_url),
    "uuid": _matching(_UUID, "does not match the UUID format"),
    "byte": _by(lambda text: base64.b64decode(text, validate=True), "invalid base64"),
    "date": _matching(_DATE, "invalid date"),
    "datetime": _by(to_timestamp, "invalid datetime"),
}


def _price(args: Sequence[Value], result: Value) -> int:
    """As for a regular expression of 60 characters, which none of them exceeds by much."""
    return costs.pattern((args[1], "x" * 60), result)


@method("format.validate(string) -> optional(list(string))", price=_price)
def validate(format_: Format, text: str) -> Optional:
    """What is wrong with the text, or none."""
    problems = _CHECKS[format_.name](text)
    return Optional(problems, True) if problems else NONE


@function("format.named(string) -> optional(format)")
def by_name(name: str) -> Optional:
    """The format of that name, if there is one."""
    return Optional(Format(name), True) if name in _CHECKS else NONE


functions({f"format.{name}() -> format": partial(Format, name) for name in _CHECKS})

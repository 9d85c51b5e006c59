"""URLs."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec

from kubesched.cel import costs, types
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, method, represent
from kubesched.cel.values import Opaque

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})", re.DOTALL)
_SAFE_IN_PATH = "/!$&'()*+,;=:@[]~"


class Url(msgspec.Struct, Opaque, frozen=True):
    """An absolute URL or an absolute path."""

    scheme: str
    host: str
    path: str
    query: str
    fragment: str

    type_name = types.URL.name


represent(types.URL, Url)


def _parse(text: str) -> Url:
    if problem := _problem(text):
        raise AbsorbableError(f'URL parse error during conversion from string: parse "{text}": {problem}')
    try:
        parts = urlsplit(text)
    except ValueError as error:
        words = f'URL parse error during conversion from string: parse "{text}": {error}'
        raise AbsorbableError(words) from None
    host = parts.netloc.rpartition("@")[2]
    return Url(parts.scheme, host, parts.path, parts.query, parts.fragment)


def _problem(text: str) -> str | None:
    if any(char < " " or char == "\x7f" for char in text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    if not text.startswith("/") and not _SCHEME.match(text):
        return "invalid URI for request"
    if not text.startswith("/") and not text.partition(":")[2].startswith("/"):
        return "invalid URI for request"
    if escape := _BAD_ESCAPE.search(text.partition("?")[0]):
        return f'invalid URL escape "{escape[0]}"'
    authority = urlsplit(text).netloc.rpartition("@")[2] if "[" not in text else ""
    if " " in authority:
        return 'invalid character " " in host name'
    if ":" in authority and not authority.rpartition(":")[2].isdecimal() and authority.rpartition(":")[2]:
        return f'invalid port ":{authority.rpartition(":")[2]}" after host'
    return None


@function("url(string) -> url", price=costs.scan_first)
def to_url(text: str) -> Url:
    """Read a URL."""
    return _parse(text)


@function("isURL(string) -> bool")
def is_url(text: str) -> bool:
    """Whether url() would work."""
    try:
        _parse(text)
    except AbsorbableError:
        return False
    return True


@method("url.getScheme() -> string")
def get_scheme(url: Url) -> str:
    """Before the colon; empty for a path."""
    return url.scheme


@method("url.getHost() -> string")
def get_host(url: Url) -> str:
    """With the port."""
    return url.host


@method("url.getHostname() -> string")
def get_hostname(url: Url) -> str:
    """Without port and brackets."""
    if url.host.startswith("["):
        return url.host[1:].partition("]")[0]
    return url.host.partition(":")[0]


@method("url.getPort() -> string")
def get_port(url: Url) -> str:
    """Empty if not given."""
    return url.host.rpartition("]")[2].partition(":")[2]


@method("url.getEscapedPath() -> string")
def get_escaped_path(url: Url) -> str:
    """The path, with what must be escaped escaped."""
    return quote(unquote(url.path), safe=_SAFE_IN_PATH) if "%" not in url.path else url.path


@method("url.getQuery() -> map(string, list(string))")
def get_query(url: Url) -> dict[str, list[str]]:
    """All values by key."""
    return parse_qs(url.query, keep_blank_values=True)

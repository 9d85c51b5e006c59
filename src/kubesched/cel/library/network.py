"""IP addresses, networks and URLs."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec

from kubesched.cel import costs, types
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, functions, method, methods, represent, succeeds
from kubesched.cel.values import Opaque

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})", re.DOTALL)
_SAFE_IN_PATH = "/!$&'()*+,;=:@[]~"
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Ip(msgspec.Struct, Opaque, frozen=True):
    """An address without a zone."""

    address: _Address


class Cidr(msgspec.Struct, Opaque, frozen=True):
    """An address and how many of its bits name the network."""

    address: _Address
    bits: int

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """All addresses that begin so."""
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    def contains(self, other: Cidr) -> bool:
        """Whether the other network is part of this one."""
        return self.bits <= other.bits and other.address in self.network()


class Url(msgspec.Struct, Opaque, frozen=True):
    """An absolute URL or an absolute path."""

    scheme: str
    host: str
    path: str
    query: str
    fragment: str


represent(types.IP, Ip)
represent(types.CIDR, Cidr)
represent(types.URL, Url)


def _address(text: str) -> _Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        message = f'ParseAddr("{text}"): unable to parse IP'
        raise AbsorbableError(f'IP Address "{text}" parse error during conversion from string: {message}') from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise AbsorbableError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise AbsorbableError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


@function("cidr(string) -> cidr", price=costs.scan_first)
def to_cidr(text: str) -> Cidr:
    """Read a network."""
    address, _, bits = text.rpartition("/")
    problem = "network address parse error during conversion from string: network address parse error during conversion"
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise AbsorbableError(f"{problem} from string: netip.ParsePrefix(\"{text}\"): no '/'") from None
    length = int(bits) if bits.isdecimal() and len(bits) < 4 else -1
    if not 0 <= length <= parsed.max_prefixlen or (len(bits) > 1 and bits.startswith("0")):
        raise AbsorbableError(f'{problem} from string: netip.ParsePrefix("{text}"): bad bits after slash: "{bits}"')
    if isinstance(parsed, ipaddress.IPv6Address) and (parsed.scope_id is not None or parsed.ipv4_mapped is not None):
        raise AbsorbableError(f'{problem} from string: netip.ParsePrefix("{text}"): IPv6 zones cannot be present')
    return Cidr(parsed, length)


@function("url(string) -> url", price=costs.scan_first)
def to_url(text: str) -> Url:
    """Read a URL."""
    if problem := _problem(text):
        raise AbsorbableError(f'URL parse error during conversion from string: parse "{text}": {problem}')
    try:
        parts = urlsplit(text)
    except ValueError as error:
        message = f'URL parse error during conversion from string: parse "{text}": {error}'
        raise AbsorbableError(message) from None
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


functions(
    {
        "ip(string) -> ip": lambda text: Ip(_address(text)),
        "isCIDR(string) -> bool": succeeds(to_cidr),
        "isIP(string) -> bool": succeeds(_address),
    },
    price=costs.scan_first,
)
functions({"ip.isCanonical(string) -> bool": lambda text: str(_address(text)) == text}, price=costs.scan_first_twice)
functions(
    {
        "isURL(string) -> bool": succeeds(to_url),
        "string(cidr) -> string": lambda cidr: f"{cidr.address}/{cidr.bits}",
        "string(ip) -> string": lambda ip: str(ip.address),
    }
)
methods(
    {
        "cidr.containsCIDR(cidr) -> bool": Cidr.contains,
        "cidr.containsCIDR(string) -> bool": lambda cidr, text: cidr.contains(to_cidr(text)),
        "cidr.containsIP(ip) -> bool": lambda cidr, ip: ip.address in cidr.network(),
        "cidr.containsIP(string) -> bool": lambda cidr, text: _address(text) in cidr.network(),
        "cidr.ip() -> ip": lambda cidr: Ip(cidr.address),
        "cidr.masked() -> cidr": lambda cidr: Cidr(cidr.network().network_address, cidr.bits),
        "cidr.prefixLength() -> int": lambda cidr: cidr.bits,
        "ip.family() -> int": lambda ip: ip.address.version,
        "ip.isLinkLocalUnicast() -> bool": lambda ip: ip.address.is_link_local,
        "ip.isLoopback() -> bool": lambda ip: ip.address.is_loopback,
        "ip.isUnspecified() -> bool": lambda ip: ip.address.is_unspecified,
        "url.getHost() -> string": lambda url: url.host,
        "url.getPort() -> string": lambda url: url.host.rpartition("]")[2].partition(":")[2],
        "url.getQuery() -> map(string, list(string))": lambda url: parse_qs(url.query, keep_blank_values=True),
        "url.getScheme() -> string": lambda url: url.scheme,
    }
)


@method("ip.isLinkLocalMulticast() -> bool")
def is_link_local_multicast(ip: Ip) -> bool:
    """224.0.0.0/24 or ff?2::/16."""
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


@method("ip.isGlobalUnicast() -> bool")
def is_global_unicast(ip: Ip) -> bool:
    """Everything that is none of the others; private networks included."""
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@method("url.getHostname() -> string")
def get_hostname(url: Url) -> str:
    """Without port and brackets."""
    if url.host.startswith("["):
        return url.host[1:].partition("]")[0]
    return url.host.partition(":")[0]


@method("url.getEscapedPath() -> string")
def get_escaped_path(url: Url) -> str:
    """The path, with what must be escaped escaped."""
    return url.path if "%" in url.path else quote(unquote(url.path), safe=_SAFE_IN_PATH)

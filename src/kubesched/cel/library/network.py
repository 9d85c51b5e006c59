"""IP addresses and networks."""

from __future__ import annotations

import ipaddress

import msgspec

from kubesched.cel import costs, types
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, method, represent
from kubesched.cel.values import Opaque

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Ip(msgspec.Struct, Opaque, frozen=True):
    """An address without a zone."""

    address: _Address

    type_name = types.IP.name


class Cidr(msgspec.Struct, Opaque, frozen=True):
    """An address and how many of its bits name the network."""

    address: _Address
    bits: int

    type_name = types.CIDR.name

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """All addresses that begin so."""
        return ipaddress.ip_network((self.address, self.bits), strict=False)


represent(types.IP, Ip)
represent(types.CIDR, Cidr)


def _address(text: str) -> _Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        words = f'ParseAddr("{text}"): unable to parse IP'
        raise AbsorbableError(f'IP Address "{text}" parse error during conversion from string: {words}') from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise AbsorbableError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise AbsorbableError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


@function("ip(string) -> ip", price=costs.scan_first)
def to_ip(text: str) -> Ip:
    """Read an address."""
    return Ip(_address(text))


@function("isIP(string) -> bool", price=costs.scan_first)
def is_ip(text: str) -> bool:
    """Whether ip() would work."""
    try:
        _address(text)
    except AbsorbableError:
        return False
    return True


@function("ip.isCanonical(string) -> bool", price=costs.scan_first_twice)
def is_canonical(text: str) -> bool:
    """Whether the address is written the one canonical way."""
    return str(_address(text)) == text


@function("string(ip) -> string")
def ip_to_string(ip: Ip) -> str:
    """The canonical spelling."""
    return str(ip.address)


@method("ip.family() -> int")
def family(ip: Ip) -> int:
    """4 or 6."""
    return ip.address.version


@method("ip.isUnspecified() -> bool")
def is_unspecified(ip: Ip) -> bool:
    """0.0.0.0 or ::."""
    return ip.address.is_unspecified


@method("ip.isLoopback() -> bool")
def is_loopback(ip: Ip) -> bool:
    """127.0.0.0/8 or ::1."""
    return ip.address.is_loopback


@method("ip.isLinkLocalMulticast() -> bool")
def is_link_local_multicast(ip: Ip) -> bool:
    """224.0.0.0/24 or ff?2::/16."""
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


@method("ip.isLinkLocalUnicast() -> bool")
def is_link_local_unicast(ip: Ip) -> bool:
    """169.254.0.0/16 or fe80::/10."""
    return ip.address.is_link_local


@method("ip.isGlobalUnicast() -> bool")
def is_global_unicast(ip: Ip) -> bool:
    """Everything that is none of the others; private networks included."""
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _cidr(text: str) -> Cidr:
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


@function("cidr(string) -> cidr", price=costs.scan_first)
def to_cidr(text: str) -> Cidr:
    """Read a network."""
    return _cidr(text)


@function("isCIDR(string) -> bool", price=costs.scan_first)
def is_cidr(text: str) -> bool:
    """Whether cidr() would work."""
    try:
        _cidr(text)
    except AbsorbableError:
        return False
    return True


@function("string(cidr) -> string")
def cidr_to_string(cidr: Cidr) -> str:
    """As address/bits."""
    return f"{cidr.address}/{cidr.bits}"


@method("cidr.ip() -> ip")
def cidr_ip(cidr: Cidr) -> Ip:
    """The address."""
    return Ip(cidr.address)


@method("cidr.prefixLength() -> int")
def prefix_length(cidr: Cidr) -> int:
    """How many bits name the network."""
    return cidr.bits


@method("cidr.masked() -> cidr")
def masked(cidr: Cidr) -> Cidr:
    """With the other bits cleared."""
    return Cidr(cidr.network().network_address, cidr.bits)


@method("cidr.containsIP(ip) -> bool")
def contains_ip(cidr: Cidr, ip: Ip) -> bool:
    """Whether the address is in the network."""
    return ip.address in cidr.network()


@method("cidr.containsIP(string) -> bool")
def contains_ip_text(cidr: Cidr, text: str) -> bool:
    """Whether the address is in the network."""
    return contains_ip(cidr, to_ip(text))


@method("cidr.containsCIDR(cidr) -> bool")
def contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    """Whether the other network is part of this one."""
    return cidr.bits <= other.bits and other.address in cidr.network()


@method("cidr.containsCIDR(string) -> bool")
def contains_cidr_text(cidr: Cidr, text: str) -> bool:
    """Whether the other network is part of this one."""
    return contains_cidr(cidr, to_cidr(text))

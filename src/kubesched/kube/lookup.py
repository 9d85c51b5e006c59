"""The addresses of a server's name, which may be several, and which a name server that is ill must not hide."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from kubesched.kube.shared_work import SharedWork

LOOKUP_PATIENCE = 0.5
"""Seconds after which the addresses that a name last had are tried while its name server is still being asked."""


class HostLookup:
    """Asks for one name, once at a time: lookups block threads, of which all connections of a process share a few."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_address = _is_address(name)
        self._known: list[str] = [name] if self._is_address else []
        self._asking = SharedWork(self._ask)

    async def addresses(self) -> list[str]:
        """At least one. Raises socket.gaierror if the name has never had any."""
        if not self._is_address:
            try:
                async with asyncio.timeout(LOOKUP_PATIENCE if self._known else None):
                    await self._asking.done()
            except OSError:  # a TimeoutError is one, too
                if not self._known:
                    raise
        return self._known

    async def end(self) -> None:
        """Ask no longer."""
        await self._asking.end()

    async def _ask(self) -> None:
        found = await asyncio.get_running_loop().getaddrinfo(self._name, None, type=socket.SOCK_STREAM)
        self._known = list(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

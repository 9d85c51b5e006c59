"""The way to the API server through a proxy, as asyncio goes it."""

from __future__ import annotations

import asyncio
from typing import cast

from kubesched import proxies
from kubesched.kube.errors import ConnectionSettingsError, UnreachableError
from kubesched.proxies import Proxy, TunnelRefusedError, TunnelTalk


def parsed_proxy(url: str, field: str) -> Proxy:
    """The proxy in a URL; `field` says where the URL is from."""
    try:
        return proxies.parsed_proxy(url, field)
    except ValueError as mistake:
        raise ConnectionSettingsError(str(mistake)) from None


class TunnelHandshake(asyncio.Protocol):
    """The talk with a proxy before the connection leads through it. `done` ends it, well or badly."""

    def __init__(self, proxy: Proxy, host: str, port: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._talk = TunnelTalk(proxy, host, port)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        self._transport.write(self._talk.opening())

    def data_received(self, data: bytes) -> None:
        if not self.done.done():
            self._hear(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._hear(b"")

    def _hear(self, data: bytes) -> None:
        try:
            answer = self._talk.heard(data)
        except TunnelRefusedError as refusal:
            self.done.set_exception(UnreachableError(str(refusal)))
            return
        if answer and self._transport is not None:
            self._transport.write(answer)
        if self._talk.is_done:
            self.done.set_result(None)

"""A web page beside the endpoints, on a port of its own: behind the same TLS and the same guard, made by others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from aiohttp import web


class Page(Protocol):
    """What a page must say about itself to be served."""

    open_paths: tuple[str, ...]
    """Files that are the same for everybody, and say nothing about the cluster."""

    def credentials(self, request: web.Request) -> Mapping[str, str]:
        """The headers that say who asks: browsers send a token in a cookie."""

    def application(self, middlewares: Iterable[Any], is_this_server: Callable[[str], bool]) -> web.Application:
        """The page behind these middlewares. `is_this_server` knows the names that requests may be addressed to."""

    async def stop(self) -> None:
        """Let go of the scheduler."""

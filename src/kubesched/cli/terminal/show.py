"""Shows a sandbox on a terminal until somebody has seen enough: looks a few times a second, and follows keys."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live

from kubesched.cli.terminal.asking import explanation, node_page, note, objects_of
from kubesched.cli.terminal.browsing import Browsing, Page
from kubesched.cli.terminal.keys import pressed
from kubesched.cli.terminal.picture import Picture, picture_of
from kubesched.cli.terminal.screen import Surroundings, draw
from kubesched.config import SchedulerConfiguration
from kubesched.framework.errors import PluginError
from kubesched.framework.registry import Registry
from kubesched.sandbox.box import Sandbox

_LOOK_SECONDS = 0.25
_AT_MOST_A_TENTH = 9
"""A large cluster takes long to draw: then the pauses are longer, so that nine tenths of the time are for it."""


class TerminalView:
    """The view of one sandbox."""

    def __init__(self, box: Sandbox, configuration: SchedulerConfiguration, plugins: Registry | None) -> None:
        self._box = box
        self._configuration, self._plugins = configuration, plugins
        self._browsing = Browsing(on_open=self._open)
        self._woken = asyncio.Event()
        self._picture: Picture | None = None
        self._asking: asyncio.Task[None] | None = None

    async def show(self, around: Callable[[bool], Surroundings], saying: Callable[[], str]) -> None:
        """Until `q`, or until this is cancelled. `around` is told whether there are keys."""
        loop = asyncio.get_running_loop()
        # A screen is as large as it is, also where COLUMNS and LINES say how wide pages are to be.
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        screen = Console(markup=False, highlight=False, emoji=False, _environ=environment)
        with pressed(self._press) as has_keys, Live(console=screen, screen=True, auto_refresh=False) as live:
            surroundings = around(has_keys)
            while not self._browsing.has_ended:
                started = loop.time()
                if self._picture is None or not self._browsing.is_paused:
                    self._picture = picture_of(self._box, saying())
                width, height = screen.size
                live.update(Group(*draw(self._picture, self._browsing, surroundings, width, height)), refresh=True)
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(_LOOK_SECONDS, (loop.time() - started) * _AT_MOST_A_TENTH)):
                        await self._woken.wait()
        if self._asking is not None:
            self._asking.cancel()

    def _press(self, key: str) -> None:
        if self._picture is not None:
            self._browsing.press(key, self._picture)
            self._woken.set()

    def _open(self, kind: str, name: str) -> None:
        assert self._picture is not None
        if kind == "node":
            self._browsing.page = node_page(next(node for node in self._picture.nodes if node.name == name))
            return
        if self._asking is not None:
            self._asking.cancel()
        self._browsing.page = waiting = note(f"Asking about {name} …")
        self._asking = asyncio.create_task(self._explain(name, waiting))

    async def _explain(self, name: str, waiting: Page) -> None:
        try:
            given = objects_of(self._box.scheduler), name, self._configuration, self._plugins
            page = await asyncio.to_thread(explanation, *given)
        except PluginError as error:
            page = note(str(error))
        if self._browsing.page is waiting:  # nobody has turned away
            self._browsing.page = page
            self._woken.set()

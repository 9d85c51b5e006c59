"""The sandbox in a real terminal, with somebody at the keys: tmux plays the terminal."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(TMUX is None, reason="there is no tmux on this PATH")


class Terminal:
    """A terminal of some size in which a command runs; a shell waits after it, so that the screen stays."""

    def __init__(self, folder: Path, size: tuple[int, int], *arguments: str) -> None:
        self._tmux = [str(TMUX), "-S", str(folder / "tmux"), "-f", "/dev/null"]
        command = " ".join([sys.executable, "-m", "kubesched", "sandbox", *arguments])
        shown = f"export LC_ALL=C.UTF-8; {command}; echo ended with $?; read wait"
        self._run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh", "-c", shown)

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout

    def press(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def shows(self, done: Callable[[str], bool], *, history: bool = False) -> str:
        """The screen, once that holds of it."""
        deadline = time.monotonic() + 120
        while not done(told := self._run("capture-pane", "-p", *(["-S", "-3000"] if history else ()))):
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        return told

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def open_terminal(size: tuple[int, int], *arguments: str) -> Terminal:
        terminals.append(Terminal(tmp_path, size, *arguments))
        return terminals[-1]

    yield open_terminal
    for terminal in terminals:
        terminal.close()


def test_the_shop_can_be_watched_searched_paused_and_asked_about(opened: Callable[..., Terminal]) -> None:
    terminal = opened((80, 24), "--scenario", "shop", "--seed", "1")
    terminal.shows(lambda told: "Search wants a node with an ssd" in told and "affinity/selector" in told)
    terminal.press("p")
    terminal.shows(lambda told: "PAUSED" in told.splitlines()[0])
    terminal.press("Left", "Enter")
    told = terminal.shows(lambda told: "It fits nowhere" in told)
    assert told.splitlines()[0].startswith(" Explain shop/search-")
    terminal.press("Down", "End", "Escape")
    terminal.shows(lambda told: " Decisions " in told)
    terminal.press("/", "c", "a", "c", "h", "e", "Enter")
    told = terminal.shows(lambda told: "/cache" in told and "shop/web-" not in told)
    assert "shop/cache-" in told
    terminal.press("Escape")
    terminal.press("p")
    terminal.shows(lambda told: "PAUSED" not in told and "The cluster is yours." in told)
    terminal.press("q")
    told = terminal.shows(lambda told: "ended with 0" in told, history=True)
    _, _, story = told.partition("The shop opens")
    assert story.count("s  bound  ") == 28  # the decisions stay in the scrollback, and the counts are theirs
    assert "28 bound" in " ".join(story.split())
    rejections = story.count("s  unschedulable ")
    assert f"({rejections} for a new reason)" in " ".join(story.split())


def test_a_small_terminal_has_room_for_what_matters(opened: Callable[..., Terminal]) -> None:
    terminal = opened((60, 20), "--scenario", "shop", "--seed", "1")
    told = terminal.shows(lambda told: "0/9 nodes are available: 9 node(s) didn't match Pod's node" in told)
    assert "node-c3" in told
    assert "1 pod  shop/search-" in told
    terminal.press("C-c")
    told = terminal.shows(lambda told: "ended with 0" in told)
    assert "Rem\n" not in told


def test_the_terminal_is_as_before_when_the_view_has_ended(opened: Callable[..., Terminal]) -> None:
    terminal = opened((80, 24), "--nodes", "2")
    told = terminal.shows(lambda told: "try  kubectl drain node-0" in told)
    assert "open http://127.0.0.1:" in told
    terminal.press("q")
    terminal.shows(lambda told: "ended with 0" in told)
    terminal.press("e", "c", "h", "o")
    terminal.shows(lambda told: "echo" in told.splitlines()[-1] or "\necho" in told)

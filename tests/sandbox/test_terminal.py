"""The sandbox in a real terminal: tmux plays it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(TMUX is None, reason="there is no tmux on this PATH")


class Terminal:
    """A terminal of some size in which a command runs; a shell waits after it, so that the screen stays."""

    def __init__(self, folder: Path, size: tuple[int, int], *arguments: str) -> None:
        self._tmux = [str(TMUX), "-S", str(folder / "tmux"), "-f", "/dev/null"]
        command = " ".join([sys.executable, "-m", "kubesched", "sandbox", *arguments])
        shown = f"trap : INT; export LC_ALL=C.UTF-8; {command}; echo ended with $?; read wait"
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


def test_the_shop_can_be_watched_and_what_was_decided_stays(opened: Callable[..., Terminal]) -> None:
    terminal = opened((80, 24), "--scenario", "shop", "--seed", "1")
    told = terminal.shows(lambda told: "── sandbox" in told)
    assert "The cluster is yours." not in told
    told = terminal.shows(lambda told: "The cluster is yours." in told and "28 bound" in told)
    assert "── zone-a 3 ──" in told
    assert "open http://127.0.0.1:" in told
    terminal.press("C-c")
    told = terminal.shows(lambda told: "ended with 0" in told, history=True)
    assert "The cluster is yours." not in told
    _, _, story = told.partition("The shop opens")
    assert story.count("s  bound  ") == 28
    rejections = story.count("s  unschedulable ")
    counts = " ".join(story.rpartition("Scheduler: ")[2].split())
    assert counts.startswith("28 bound, ")
    attempts, _, rest = counts.removeprefix("28 bound, ").partition(" unschedulable attempts")
    repeated = rest.removeprefix(" (").partition(" that only repeat")[0] if rest.startswith(" (") else "0"
    assert int(attempts) - int(repeated) == rejections


def test_a_small_terminal_shows_who_waits_and_why(opened: Callable[..., Terminal], tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    terminal = opened((60, 20), "--nodes", "3", "--kubeconfig", str(file))
    terminal.shows(lambda told: "node-2" in told)
    wants_much = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "64"}}}
    create_pod(file, {"metadata": {"name": "giant"}, "spec": {"containers": [wants_much]}})
    told = terminal.shows(lambda told: "0/3 nodes are available: 3 Insufficient cpu" in told)
    assert "1 pod  default/giant" in told
    assert "So far 0 bound, 1 unschedulable attempt" in told
    terminal.press("C-c")
    told = terminal.shows(lambda told: "ended with 0" in told)
    assert "node-0" in told


def create_pod(kubeconfig: Path, pod: dict[str, Any]) -> None:
    server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    address, kind = f"{server}/api/v1/namespaces/default/pods", {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(pod).encode(), kind)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


def test_the_terminal_is_as_before_when_the_view_has_ended(opened: Callable[..., Terminal]) -> None:
    terminal = opened((80, 24), "--nodes", "2")
    told = terminal.shows(lambda told: "try  kubectl drain node-0" in told)
    assert "open http://127.0.0.1:" in told
    terminal.press("C-c")
    terminal.shows(lambda told: "ended with 0" in told)
    terminal.press("s", "e", "e", "n")
    terminal.shows(lambda told: told.rstrip().endswith("seen"))

"""Where somebody who looks is: the pane, what is selected or searched for, paused or not, and a page that is open."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from kubesched.cli.terminal import keys
from kubesched.cli.terminal.picture import NodeShape, Picture, WaitingGroup
from kubesched.sandbox.chronicle import Entry

WAITING, DECISIONS, NODES = "waiting", "decisions", "nodes"
PANES = (WAITING, DECISIONS, NODES)
_LEAP = 10


@dataclass(frozen=True)
class Found:
    """What of a picture is shown in lists: all of it, or what a search finds."""

    waiting: Sequence[WaitingGroup]
    decisions: Sequence[Entry]
    nodes: Sequence[NodeShape]

    def ids(self, pane: str) -> list[Hashable]:
        """What there is to select in a pane; it stays selected while others come and go."""
        if pane == WAITING:
            return [group.reason for group in self.waiting]
        return list(self.decisions) if pane == DECISIONS else [node.name for node in self.nodes]


@dataclass
class Page:
    """Something to read in place of the view: an explanation, or a node."""

    title: str
    lines: Callable[[int], list[Text]]
    """Its lines for a width."""
    top: int = 0


@dataclass
class Browsing:
    """Follows keys. `on_open` is called with what Enter was pressed on: `pod` or `node`, and its name."""

    on_open: Callable[[str, str], None] = lambda kind, name: None
    pane: str = DECISIONS
    search: str = ""
    is_typing: bool = False
    is_paused: bool = False
    has_ended: bool = False
    page: Page | None = None
    _selected: dict[str, Hashable] = field(default_factory=dict)

    def press(self, key: str, picture: Picture) -> None:
        if self.is_typing:
            self._type(key)
        elif self.page is not None:
            self._turn(self.page, key)
        elif key == "q":
            self.has_ended = True
        elif key == "p":
            self.is_paused = not self.is_paused
        elif key == "/":
            self.is_typing, self.search = True, ""
        elif key == keys.ESCAPE:
            self.search = ""
            self._selected.clear()
        elif key in (keys.LEFT, keys.RIGHT, keys.TAB):
            self._change_pane(-1 if key == keys.LEFT else 1, self.found(picture))
        elif key == keys.ENTER:
            self._open(picture)
        else:
            self._move(key, self.found(picture).ids(self.pane))

    def found(self, picture: Picture) -> Found:
        """What matches the search, in any part of a name or a reason."""
        text = self.search.lower()
        if not text:
            return Found(picture.waiting, picture.decisions, picture.nodes)
        return Found(
            [each for each in picture.waiting if text in each.reason.lower() or any(text in pod for pod in each.pods)],
            [entry for entry in picture.decisions if text in f"{entry.pod} {entry.text}".lower()],
            [node for node in picture.nodes if text in node.name or any(text in pod.key for pod in node.pods)],
        )

    def selected(self, pane: str, found: Found) -> int | None:
        """Which of a pane's lines is selected; the first, until somebody moves. None in other panes."""
        if pane != self.pane:
            return None
        ids = found.ids(pane)
        chosen = self._selected.get(pane)
        return ids.index(chosen) if chosen in ids else 0 if ids else None

    def _change_pane(self, step: int, found: Found) -> None:
        """To the next that has something in it."""
        at = PANES.index(self.pane)
        others = [PANES[(at + step * i) % len(PANES)] for i in range(1, len(PANES))]
        self.pane = next((pane for pane in others if found.ids(pane)), self.pane)

    def _move(self, key: str, ids: Sequence[Hashable]) -> None:
        steps = {keys.UP: -1, keys.DOWN: 1, keys.PAGE_UP: -_LEAP, keys.PAGE_DOWN: _LEAP}
        ends = {keys.HOME: 0, keys.END: len(ids) - 1}
        if not ids or key not in (*steps, *ends):
            return
        chosen = self._selected.get(self.pane)
        now = ids.index(chosen) if chosen in ids else 0
        there = ends.get(key, now + steps.get(key, 0))
        self._selected[self.pane] = ids[min(max(there, 0), len(ids) - 1)]

    def _type(self, key: str) -> None:
        if key in (keys.ENTER, keys.ESCAPE):
            self.is_typing = False
            self.search = self.search if key == keys.ENTER else ""
        elif key == keys.BACKSPACE:
            self.search = self.search[:-1]
        elif len(key) == 1:
            self.search += key

    def _turn(self, page: Page, key: str) -> None:
        steps = {keys.UP: -1, keys.DOWN: 1, keys.PAGE_UP: -_LEAP, keys.PAGE_DOWN: _LEAP, " ": _LEAP}
        if key in ("q", keys.ESCAPE, keys.ENTER, keys.LEFT):
            self.page = None
        elif key == keys.HOME:
            page.top = 0
        else:
            page.top = max(page.top + steps.get(key, 0), 0)

    def _open(self, picture: Picture) -> None:
        found = self.found(picture)
        i = self.selected(self.pane, found)
        if i is None:
            return
        if self.pane == NODES:
            self.on_open("node", found.nodes[i].name)
        else:
            self.on_open("pod", found.waiting[i].pods[0] if self.pane == WAITING else found.decisions[i].pod)

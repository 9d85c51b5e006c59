"""The whole screen as lines, whatever its size: addresses, the story, the map, who waits, decisions, and the keys."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from kubesched.cli.printing import BAD, FAINT, STRONG
from kubesched.cli.terminal.browsing import DECISIONS, NODES, WAITING, Browsing, Found, Page
from kubesched.cli.terminal.lists import decision_list, title, waiting_list
from kubesched.cli.terminal.node_map import node_map
from kubesched.cli.terminal.picture import NodeShape, Picture
from kubesched.questions.wording import counted

_SIDE_BY_SIDE_FROM = 120
_ROOM_FOR_HINTS = 34
"""Lines from which on commands to try are always shown, not only while no story is told."""
_LEAST_DECISIONS = 5
"""Lines, with the title, that decisions have if they need them."""
_GUTTER = 3


@dataclass(frozen=True)
class Surroundings:
    """What stays the same while the view is shown."""

    kubeconfig: str
    page: str = ""
    """The address of the web page."""
    warning: str = ""
    hints: tuple[str, ...] = ()
    """Commands to try next."""
    has_keys: bool = True


def draw(picture: Picture, browsing: Browsing, around: Surroundings, width: int, height: int) -> list[Text]:
    """Exactly so many lines, none wider."""
    foot = _foot(browsing, around, width)
    if browsing.page is not None:
        lines = _page(browsing.page, width, height - 1)
    else:
        lines = _head(picture, browsing, around, width, height)
        body = height - 1 - len(lines)
        found = browsing.found(picture)
        lines += (_wide if width >= _SIDE_BY_SIDE_FROM else _narrow)(picture, found, browsing, width, body)
    lines = lines[: height - 1]
    for line in lines:
        line.truncate(width, overflow="ellipsis")  # names may be longer than any line
    return [*lines, *(Text() for _ in range(height - 1 - len(lines))), foot]


# -- head and foot ----------------------------------------------------------------------------------------------------


def _head(picture: Picture, browsing: Browsing, around: Surroundings, width: int, height: int) -> list[Text]:
    waiting = sum(picture.places.values())
    what = f"{counted(len(picture.nodes), 'node')}, {counted(picture.pods, 'pod')} placed, {waiting} waiting"
    state = "PAUSED" if browsing.is_paused else f"{picture.at:.0f}s"
    first = Text.assemble(("sandbox", STRONG), "  ", what)
    first.append(state.rjust(width - first.cell_len), style=BAD if browsing.is_paused else FAINT)
    lines = [first]
    if around.page:
        lines += _told(f"open {around.page}", width, f"link {around.page}")
    lines += _told(f"export KUBECONFIG={around.kubeconfig}", width)
    lines += _told(around.warning, width, BAD)
    lines += _told(picture.saying or "The cluster is yours.", width, STRONG)
    if height >= _ROOM_FOR_HINTS or not picture.saying:
        lines += [Text.assemble(("try  ", FAINT), hint) for hint in around.hints if len(hint) + 5 <= width]
    return lines


def _told(text: str, width: int, style: str = "") -> list[Text]:
    """Whole words; a path that is longer than a line goes on in the next."""
    return [Text(line, style=style) for line in textwrap.wrap(text, width, break_on_hyphens=False)]


def _foot(browsing: Browsing, around: Surroundings, width: int) -> Text:
    if browsing.is_typing:
        return Text.assemble(("/", STRONG), browsing.search, ("▏", STRONG), ("  Enter keeps it, Esc clears it", FAINT))
    if not around.has_keys:
        return Text("Ctrl-C ends it", style=FAINT)
    if browsing.page is not None:
        return Text("q back   ↑↓ scroll", style=FAINT)
    searched = f"  /{browsing.search} (Esc clears it)" if browsing.search else ""
    keys = "q end  ↑↓ move  ←→ pane  Enter explain  / search  p pause"
    return Text.assemble((keys, FAINT) if len(keys) + len(searched) <= width else "", (searched, STRONG))


# -- the body ---------------------------------------------------------------------------------------------------------


def _narrow(picture: Picture, found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    """Everything below each other. Decisions always have a few lines; the map and who waits share the others."""
    counts = _so_far(picture, width)
    height -= len(counts)
    least = len(_decisions(found, browsing, width, _LEAST_DECISIONS))
    shapes = _map(picture, found, browsing, width, max((height - least) * 3 // 5, 2))
    height -= len(shapes)
    waiting = _waiting(picture, found, browsing, width, max(height - least, 3))
    decisions = _decisions(found, browsing, width, height - len(waiting))
    return [*shapes, *waiting, *decisions, *counts]


def _wide(picture: Picture, found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    """The map across, below it who waits beside the decisions."""
    counts = _so_far(picture, width)
    height -= len(counts) + 2
    shapes = _map(picture, found, browsing, width, height * 3 // 5)
    left = height - len(shapes)
    if not found.waiting:
        lists = [
            *_waiting(picture, found, browsing, width, 1),
            *_decisions(found, browsing, width, left - 1),
        ]
        return [Text(), *shapes, Text(), *lists, *(Text() for _ in range(left - len(lists))), *counts]
    half = (width - _GUTTER) * 2 // 5
    waiting = _waiting(picture, found, browsing, half, left)
    decisions = _decisions(found, browsing, width - half - _GUTTER, left)
    both = []
    for i in range(max(len(waiting), len(decisions))):
        line = waiting[i] if i < len(waiting) else Text()
        line.append(" " * (half + _GUTTER - line.cell_len))
        both.append(line.append_text(decisions[i]) if i < len(decisions) else line)
    both += [Text() for _ in range(left - len(both))]
    return [Text(), *shapes, Text(), *both, *counts]


def _map(picture: Picture, found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    nodes: Sequence[NodeShape] = found.nodes if browsing.search else picture.nodes
    i = browsing.selected(NODES, found)
    if i is None:
        return node_map(nodes, width, height)
    node = found.nodes[i]
    about = f"{node.name}: cpu {node.cpu:.0%}, memory {node.memory:.0%}, {counted(len(node.pods), 'pod')}"
    return [title("Nodes", about, width, active=True), *node_map(nodes, width, height - 1, node.name)]


def _waiting(picture: Picture, found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    places = ", ".join(f"{count} {place}" for place, count in sorted(picture.places.items()))
    head = title("Waiting", places, width, active=browsing.pane == WAITING)
    if not found.waiting:
        return [head.append_text(Text.assemble(" ", *waiting_list(found, browsing, width, 1)))][:height]
    return [head, *waiting_list(found, browsing, width, height - 1)]


def _decisions(found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    head = title("Decisions", "the latest first", width, active=browsing.pane == DECISIONS)
    return [head, *decision_list(found, browsing, width, height - 1)]


def _so_far(picture: Picture, width: int) -> list[Text]:
    """The counts, wrapped between them."""
    return _told(f"So far {picture.so_far.plain}", width, FAINT)


def _page(page: Page, width: int, height: int) -> list[Text]:
    lines = page.lines(width)
    page.top = min(page.top, max(len(lines) - height + 1, 0))
    return [title(page.title, "", width, active=True), *lines[page.top : page.top + height - 1]]

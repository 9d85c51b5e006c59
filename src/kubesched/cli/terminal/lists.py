"""Lists of the view: pods that wait, by reason, and decisions, in whole words; as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.text import Text

from kubesched.cli.layout import wrap
from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG
from kubesched.cli.terminal.browsing import Browsing, Found
from kubesched.cli.terminal.node_map import SELECTED
from kubesched.cli.terminal.picture import WaitingGroup
from kubesched.questions.wording import counted, listed
from kubesched.sandbox.chronicle import Entry

T = TypeVar("T")
_INDENT = "  "
_MARKS = {"bound": ("✓", GOOD), "preempts": ("⇄", BAD)}
_IN_VAIN = ("✗", BAD)


def waiting_list(found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    """Reasons with the pods that they keep waiting."""
    if not found.waiting:
        return [Text("nobody" if not browsing.search else "none that matches", style=FAINT)][:height]
    selected = browsing.selected("waiting", found)
    return _window(found.waiting, lambda group: _group(group, width), height, selected)


def decision_list(found: Found, browsing: Browsing, width: int, height: int) -> list[Text]:
    """The latest first."""
    if not found.decisions:
        return [Text("none yet" if not browsing.search else "none that matches", style=FAINT)][:height]
    return _window(found.decisions, lambda entry: _entry(entry, width), height, browsing.selected("decisions", found))


def title(text: str, about: str, width: int, *, active: bool) -> Text:
    """The head of a pane, down to what there is room for; the active one is lit."""
    line = Text.assemble((f" {text} ", f"{STRONG} {SELECTED}" if active else STRONG))
    room = width - line.cell_len - 1
    if about and len(about) <= room:
        line.append(f" {about}", style=FAINT)
    return line


def _group(group: WaitingGroup, width: int) -> list[Text]:
    names = listed(group.pods, most=3)
    if len(f"{names}  {counted(len(group.pods), 'pod')}") > width:
        names = listed(group.pods, most=1) if len(group.pods) > 2 else group.pods[0]
    head = f"{counted(len(group.pods), 'pod')}  {names}"
    return [Text(line, style=STRONG) for line in wrap(head, width)] + [
        Text(_INDENT + line, style=BAD) for line in wrap(group.reason, width - len(_INDENT))
    ]


def _entry(entry: Entry, width: int) -> list[Text]:
    """What happened when, to whom, and why: in one line, or with the reason wrapped below."""
    mark, style = _MARKS.get(entry.outcome, _IN_VAIN)
    head = Text.assemble((f"{entry.at:.1f}s", FAINT), " ", (mark, style), " ", (entry.pod, STRONG))
    why = Text(entry.text, style="" if entry.outcome == "bound" else BAD)
    if head.cell_len + 1 + why.cell_len <= width:
        return [Text.assemble(head, " ", why)]
    lines = wrap(entry.text, width - len(_INDENT))
    return [head, *(Text(_INDENT + line, style=why.style) for line in lines)]


def _window(items: Sequence[T], drawn: Callable[[T], list[Text]], height: int, selected: int | None) -> list[Text]:
    """Whole items from the first on, or up to the selected one; at least one item, cut if it must be."""
    if height <= 0:
        return []
    first = at = selected or 0
    taken = len(drawn(items[at]))
    while first > 0 and taken + len(drawn(items[first - 1])) <= height:
        first -= 1
        taken += len(drawn(items[first]))
    lines: list[Text] = []
    for i in range(first, len(items)):
        made = drawn(items[i])
        if i == selected:
            made[0].stylize(SELECTED)
        if lines and len(lines) + len(made) > height:
            break
        lines += made
    if len(lines) > height:
        lines = lines[:height]
        lines[-1].truncate(max(lines[-1].cell_len - 2, 1))
        lines[-1].append(" …", style=FAINT)
    return lines

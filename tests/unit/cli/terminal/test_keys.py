"""What a terminal sends, as keys; and what keys do."""

from __future__ import annotations

from collections import Counter

import pytest
from rich.text import Text

from kubesched.cli.terminal.browsing import DECISIONS, NODES, WAITING, Browsing, Page
from kubesched.cli.terminal.keys import keys_in
from kubesched.cli.terminal.picture import NodeShape, Picture, WaitingGroup
from kubesched.sandbox.chronicle import Entry


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x1b[A\x1b[B\x1bOC\x1bOD", ["up", "down", "right", "left"]),
        ("\x1b", ["escape"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("/wéb\r", ["/", "w", "é", "b", "enter"]),
        ("\x7f\t", ["backspace", "tab"]),
        ("\x1b[200~p", ["p"]),
        ("\x1b[1;5C", []),
        ("\x00\x02", []),
    ],
)
def test_what_is_sent_is_read_as_keys(sent: str, keys: list[str]) -> None:
    assert list(keys_in(sent)) == keys


def picture(*, decisions: int = 3, waiting: int = 1) -> Picture:
    return Picture(
        at=1.0,
        nodes=tuple(NodeShape(f"node-{i}", "zone-a", 0.5, 0.25, "", ()) for i in range(3)),
        waiting=tuple(WaitingGroup(f"reason {i}", (f"shop/waits-{i}",)) for i in range(waiting)),
        places=Counter(unschedulable=waiting),
        decisions=tuple(Entry(float(i), f"shop/web-{i}", "bound", "on node-1") for i in reversed(range(decisions))),
        so_far=Text("3 bound"),
    )


def press(browsing: Browsing, *keys: str, on: Picture | None = None) -> Browsing:
    for key in keys:
        browsing.press(key, on or picture())
    return browsing


def test_q_ends_and_p_pauses_and_goes_on() -> None:
    assert press(Browsing(), "q").has_ended
    assert press(Browsing(), "p").is_paused
    assert not press(Browsing(), "p", "p").is_paused


def test_arrows_move_and_what_is_selected_stays_so_while_new_decisions_come() -> None:
    browsing = press(Browsing(), "down")
    assert browsing.selected(DECISIONS, browsing.found(picture())) == 1
    assert browsing.selected(DECISIONS, browsing.found(picture(decisions=5))) == 3
    assert press(browsing, "down", "down", "down").selected(DECISIONS, browsing.found(picture())) == 2
    assert press(browsing, "home").selected(DECISIONS, browsing.found(picture())) == 0


def test_arrows_to_the_sides_go_to_panes_that_have_something_in_them() -> None:
    assert press(Browsing(), "right").pane == NODES
    assert press(Browsing(), "left").pane == WAITING
    assert press(Browsing(), "left", on=picture(waiting=0)).pane == NODES


def test_enter_opens_what_is_selected() -> None:
    opened: list[tuple[str, str]] = []
    browsing = Browsing(on_open=lambda kind, name: opened.append((kind, name)))
    press(browsing, "enter", "down", "enter", "left", "enter", "left", "enter")
    assert opened == [("pod", "shop/web-2"), ("pod", "shop/web-1"), ("pod", "shop/waits-0"), ("node", "node-0")]
    press(browsing, "tab", "enter", on=picture(waiting=0, decisions=0))
    assert opened[-1] == ("node", "node-0")


def test_a_search_is_typed_kept_by_enter_and_cleared_by_escape() -> None:
    browsing = press(Browsing(), "/", *"web-q", "backspace", "1")
    assert (browsing.is_typing, browsing.search, browsing.has_ended) == (True, "web-1", False)
    press(browsing, "enter")
    assert not browsing.is_typing
    assert [entry.pod for entry in browsing.found(picture()).decisions] == ["shop/web-1"]
    assert press(browsing, "escape").search == ""
    assert press(browsing, "/", "x", "escape").search == ""


def test_a_page_scrolls_and_is_closed_without_ending_the_view() -> None:
    browsing = Browsing(page=Page("Explain", lambda width: [Text("a")] * 30))
    press(browsing, "down", "down", "up")
    assert browsing.page is not None
    assert browsing.page.top == 1
    press(browsing, "q")
    assert browsing.page is None
    assert not browsing.has_ended

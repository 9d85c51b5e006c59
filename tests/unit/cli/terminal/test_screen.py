"""The terminal view of a sandbox: at every size whole words, and all that matters."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import pytest
from rich.text import Text

from kubesched.api.kinds import NODES, PODS
from kubesched.cli.terminal.browsing import DECISIONS, WAITING, Browsing
from kubesched.cli.terminal.browsing import NODES as NODES_PANE
from kubesched.cli.terminal.picture import ANOTHER_SCHEDULER, ITS_TURN, Picture, picture_of
from kubesched.cli.terminal.screen import Surroundings, draw
from kubesched.sandbox.box import Plan, Sandbox
from kubesched.sandbox.nodes import node_manifests

SIZES = [(60, 20), (80, 24), (100, 30), (160, 50)]
SAYING = "Zone c is cordoned, and 6 more web servers are wanted: the spread allows no zone to run ahead."
PAGE = "http://127.0.0.1:39411/?token=mTqfW0XtQ2sCmTqfW0XtQ2sC"
HINTS = ("kubectl -n shop scale deployment web --replicas=150", "kubectl get pods", "kubesched explain deployment/web")
AROUND = Surroundings("/tmp/kubesched-sandbox-a1b2c3d4/kubeconfig", PAGE, hints=HINTS)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


async def _seen(nodes: int, schedules: bool) -> Picture:
    """Nodes of which the first is cordoned, six pods that run, and two that wait for a node with an ssd."""
    manifests = node_manifests(nodes)
    box = Sandbox(Plan(nodes=manifests, schedules=schedules, seed=1))
    await box.start()
    try:
        name = manifests[0]["metadata"]["name"]
        box.api.patch(NODES, "", name, {"spec": {"unschedulable": True}})
        for i in range(6):
            box.api.create(PODS, "default", pod(f"web-9k62wnz9lv-hv5b{i}"))
        for i in range(2):
            box.api.create(PODS, "default", pod(f"search-rmghtx77kx-9q5p{i}", nodeSelector={"disk": "ssd"}))
        async with asyncio.timeout(60):
            while not _is_settled(picture := picture_of(box, SAYING), schedules=schedules):
                await asyncio.sleep(0.01)
        return picture
    finally:
        await box.stop()


def _is_settled(picture: Picture, *, schedules: bool) -> bool:
    """Nobody is in an attempt, and all have had one."""
    waiting = [group.reason for group in picture.waiting for _ in group.pods]
    return (picture.pods == 6 and len(waiting) == 2 and ITS_TURN not in waiting) if schedules else len(waiting) == 8


@cache
def seen(nodes: int = 9, *, schedules: bool = True) -> Picture:
    return asyncio.run(_seen(nodes, schedules))


def lines_of(picture: Picture, browsing: Browsing | None = None, size: tuple[int, int] = (80, 24)) -> list[str]:
    drawn = draw(picture, browsing or Browsing(), AROUND, *size)
    return [line.plain for line in drawn]


def words_of(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("nodes", [2, 9, 30, 2000])
def test_it_fills_the_screen_and_no_more(nodes: int, size: tuple[int, int]) -> None:
    for pane in (WAITING, DECISIONS, NODES_PANE):
        drawn = draw(seen(nodes), Browsing(pane=pane), AROUND, *size)
        assert len(drawn) == size[1]
        assert max(line.cell_len for line in drawn) <= size[0]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_all_that_matters_is_there_in_whole_words(size: tuple[int, int]) -> None:
    lines = lines_of(seen(), size=size)
    told = words_of(lines)
    assert lines[0].split()[:8] == ["sandbox", "9", "nodes,", "6", "pods", "placed,", "2", "waiting"]
    assert f"open {PAGE}" in lines
    assert f"export KUBECONFIG={AROUND.kubeconfig}" in lines
    assert SAYING in told
    for i in range(9):
        assert any(f"node-{i} " in line for line in lines)
    assert "cordon" in told
    assert "2 pods" in told
    assert "web-9k62wnz9lv-hv5b" in told or "search-rmghtx77kx-9q5p1" in told
    assert f"So far {seen().so_far.plain}" in told
    assert "q end" in lines[-1]
    # beside each other, the reasons of waiting pods and of decisions share lines
    left = [line[: (size[0] - 3) * 2 // 5] for line in lines] if size[0] >= 120 else lines
    [group] = seen().waiting
    assert "node(s) didn't match Pod's node affinity/selector" in group.reason
    assert group.reason in words_of(left)


def test_a_large_screen_shows_every_decision_and_bars_of_cpu_and_memory() -> None:
    lines = lines_of(seen(), size=(160, 50))
    assert sum(" ✓ " in line or " ✗ " in line for line in lines) == 8
    assert sum("cpu " in line and " mem " in line for line in lines) == 3
    assert all(f"try  {hint}" in lines for hint in HINTS)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_commands_to_try_are_shown_whenever_no_story_is_told(size: tuple[int, int]) -> None:
    picture = seen()
    quiet = Picture(**{**vars(picture), "saying": ""})
    lines = lines_of(quiet, size=size)
    assert all(f"try  {hint}" in lines for hint in HINTS)
    assert any("✗" in line or "✓" in line for line in lines)


def test_each_pod_is_a_square_and_thousands_of_nodes_are_a_block_each() -> None:
    assert "".join(lines_of(seen())).count("■") + "".join(lines_of(seen())).count("□") == 6
    many = "".join(lines_of(seen(2000), size=(160, 50)))
    assert many.count("▁") + many.count("▂") == 1999  # and the one that is cordoned
    assert "… 1" in "".join(lines_of(seen(2000), size=(60, 20)))


def test_without_a_scheduler_inside_pods_are_said_to_wait_for_another() -> None:
    assert ANOTHER_SCHEDULER in words_of(lines_of(seen(2, schedules=False)))


def test_a_search_leaves_what_matches() -> None:
    lines = lines_of(seen(), Browsing(search="search-"), (80, 24))
    assert not any("web-9k62" in line for line in lines)
    assert any("search-rmghtx77kx" in line for line in lines)
    assert any(line.startswith("2 pods ") for line in lines)
    assert "/search-" in lines[-1]


def test_a_pane_that_is_selected_shows_its_selection() -> None:
    def reversed_lines(browsing: Browsing) -> list[Text]:
        drawn = draw(seen(), browsing, AROUND, 80, 24)
        return [line for line in drawn if any("reverse" in str(span.style) for span in line.spans)]

    browsing = Browsing(pane=NODES_PANE)
    browsing.press("down", seen())
    assert [line.plain.split()[0] for line in reversed_lines(browsing)] == ["Nodes", "node-3"]
    assert "node-3: cpu" in reversed_lines(browsing)[0].plain


def test_names_and_paths_that_are_longer_than_a_line_do_not_break_the_screen() -> None:
    around = Surroundings("/home/somebody/a-long-way-to/the-folder-of-a-project/of-many/kubeconfig", PAGE, "w" * 200)
    node = seen().nodes[0]._replace(name="ip-10-0-0-1." + "x" * 200)
    entry = seen().decisions[0]._replace(pod="default/" + "y" * 200)
    picture = Picture(**{**vars(seen()), "nodes": (node,), "decisions": (entry,)})
    drawn = draw(picture, Browsing(), around, 60, 20)
    assert max(line.cell_len for line in drawn) <= 60
    assert f"export KUBECONFIG={around.kubeconfig}" in "".join(line.plain for line in drawn)

"""The live picture of a sandbox on a terminal: at every size whole words, and all that matters."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from kubesched.api.kinds import NODES, PODS
from kubesched_sandbox.box import Sandbox, SandboxSettings
from kubesched_sandbox.nodes import node_manifests
from kubesched_sandbox.view import ANOTHER_SCHEDULER, Addresses, NodeUsage, draw, print_fullest

SIZES = [(60, 20), (80, 24), (100, 30), (160, 50)]
SAYING = "Zone c is cordoned, and 6 more web servers are wanted: the spread allows no zone to run ahead."
PAGE = "http://127.0.0.1:39411/?token=mTqfW0XtQ2sCmTqfW0XtQ2sC"
HINTS = ("kubectl -n shop scale deployment web --replicas=150", "kubectl get pods", "kubesched explain deployment/web")
ADDRESSES = Addresses("/tmp/kubesched-sandbox-a1b2c3d4/kubeconfig", PAGE, hints=HINTS)
REASON = "node(s) didn't match Pod's node affinity/selector"

Drawings = dict[tuple[int, int, str], list[Text]]


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


async def _drawn(nodes: int, schedules: bool, addresses: Addresses) -> Drawings:
    """Nodes of which the first is cordoned, six pods that run, and two that wait for a node with an ssd."""
    manifests = node_manifests(nodes)
    box = Sandbox(SandboxSettings(nodes=manifests, schedules=schedules, seed=1))
    await box.start()
    try:
        name = manifests[0]["metadata"]["name"]
        box.api.patch(NODES, "", name, {"spec": {"unschedulable": True}})
        for i in range(6):
            box.api.create(PODS, "default", pod(f"web-9k62wnz9lv-hv5b{i}"))
        for i in range(2):
            box.api.create(PODS, "default", pod(f"search-rmghtx77kx-9q5p{i}", nodeSelector={"disk": "ssd"}))
        await _settled(box, lambda: box.chronicle.outcomes["bound"] == 6 if schedules else _queued(box) == 8)
        await _settled(box, lambda: not schedules or box.chronicle.told["unschedulable"] == 2)
        return {(*size, saying): draw(box, addresses, saying, *size) for size in SIZES for saying in (SAYING, "")}
    finally:
        await box.stop()


def _queued(box: Sandbox) -> int:
    return sum(len(list(place)) for places in box.scheduler.queue.places().values() for place in places)


async def _settled(box: Sandbox, is_settled: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_settled():
            await asyncio.sleep(0.01)


@cache
def drawn(nodes: int = 9, *, schedules: bool = True, addresses: Addresses = ADDRESSES) -> Drawings:
    return asyncio.run(_drawn(nodes, schedules, addresses))


def words_of(lines: list[Text]) -> str:
    return " ".join(" ".join(line.plain for line in lines).split())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("nodes", [2, 9, 30, 2000])
def test_it_leaves_room_for_the_story_and_is_not_wider_than_the_terminal(nodes: int, size: tuple[int, int]) -> None:
    for saying in (SAYING, ""):
        lines = drawn(nodes)[*size, saying]
        assert len(lines) <= size[1] - size[1] // 5
        assert max(line.cell_len for line in lines) <= size[0]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_addresses_the_story_nodes_and_who_waits_are_there_in_whole_words(size: tuple[int, int]) -> None:
    lines = drawn()[*size, SAYING]
    plain, words = [line.plain.rstrip() for line in lines], words_of(lines)
    assert "sandbox 9 nodes, 6 pods placed, 2 waiting" in words
    assert f"open {PAGE}" in plain
    assert f"export KUBECONFIG={ADDRESSES.kubeconfig}" in plain
    assert SAYING in words
    assert "node-0 cordon" in words
    assert "Waiting " in words
    assert "So far 6 bound, " in words


@pytest.mark.parametrize("size", SIZES[1:], ids=str)
def test_a_terminal_of_the_usual_size_shows_all_nodes_and_the_reason_of_those_that_wait(size: tuple[int, int]) -> None:
    words = words_of(drawn()[*size, SAYING])
    assert all(f"node-{i} " in words for i in range(9))
    assert "2 pods default/search-rmghtx77kx-9q5p0, default/search-rmghtx77kx-9q5p1" in words
    assert REASON in words


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_commands_to_try_are_shown_whenever_no_story_is_told(size: tuple[int, int]) -> None:
    plain = [line.plain for line in drawn()[*size, ""]]
    assert all(f"try  {hint}" in plain for hint in HINTS)


def test_each_pod_is_a_square_and_of_thousands_of_nodes_it_says_how_many_more_there_are() -> None:
    words = words_of(drawn()[80, 24, SAYING])
    assert words.count("■") + words.count("□") == 6
    assert words_of(drawn(2000)[80, 24, SAYING]).count(" more") == 4  # in the story, and one per zone


def test_of_thousands_of_nodes_it_shows_those_where_something_is_the_matter_and_the_fullest() -> None:
    words = words_of(drawn(2000)[100, 30, SAYING])
    assert words.count("■") + words.count("□") == 6
    assert "node-0000 cordon" in words


def test_without_a_scheduler_inside_pods_are_said_to_wait_for_another() -> None:
    assert ANOTHER_SCHEDULER in words_of(drawn(2, schedules=False)[80, 24, SAYING])


def test_paths_that_are_longer_than_a_line_are_wrapped_and_warnings_shown() -> None:
    path = "/home/somebody/a-long-way-to/the-folder-of-a-project/of-many/kubeconfig"
    lines = drawn(2, addresses=Addresses(path, PAGE, "w" * 200))[60, 20, ""]
    assert max(line.cell_len for line in lines) <= 60
    assert path in "".join(line.plain for line in lines)
    assert "".join(line.plain for line in lines).count("w" * 60) >= 3


# -- the last table of a sandbox --------------------------------------------------------------------------------------


def test_the_last_table_says_what_the_nodes_are_like_that_it_leaves_out() -> None:
    """25 nodes are cordoned and empty, 15 are at 75 %: the note below said "none of them fuller"."""
    nodes = [NodeUsage(f"cordoned-{i:02}", 0.0, 0.0, 0, ("cordoned",), "a", i) for i in range(25)]
    nodes += [NodeUsage(f"used-{i:02}", 0.75, 0.5, 3, (), "a", 25 + i) for i in range(15)]
    out = Console(file=io.StringIO(), width=80)
    print_fullest(out, nodes, 20)
    assert isinstance(out.file, io.StringIO)
    shown = out.file.getvalue()
    assert shown.count("75%") == 15
    assert "and 20 nodes more: at most 0% of CPU and 0% of memory requested, 20 cordoned" in shown

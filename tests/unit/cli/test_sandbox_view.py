"""The live view of the sandbox fits the screen, whatever its size, and has room for what matters."""

from __future__ import annotations

import asyncio

import pytest
from rich.console import Console

from kubesched.api.kinds import PODS
from kubesched.cli.sandbox_view import view, waiting
from kubesched.sandbox.box import Plan, Sandbox
from kubesched.sandbox.nodes import node_manifests

SAYING = "Zone c is cordoned, and 6 more web servers are wanted: the spread allows no zone to run ahead."
SCREENS = [(80, 24), (100, 30), (200, 50)]


async def a_sandbox_with_six_pods_seen_on(screens: list[Console], *, nodes: int, saying: str) -> list[str]:
    manifests = node_manifests(nodes)
    manifests[0]["spec"] = {"unschedulable": True}
    box = Sandbox(Plan(nodes=manifests, seed=1))
    await box.start()
    try:
        for i in range(6):
            spec = {"containers": [{"name": "main", "image": "app"}]}
            box.api.create(PODS, "default", {"metadata": {"name": f"web-{i}"}, "spec": spec})
        async with asyncio.timeout(60):
            while box.chronicle.outcomes["bound"] < 6:
                await asyncio.sleep(0.01)
        shown = []
        for screen in screens:
            with screen.capture() as captured:
                screen.print(view(box, screen, saying=saying))
            shown.append(captured.get())
        return shown
    finally:
        await box.stop()


async def a_sandbox_without_a_scheduler() -> str:
    screen = Console(width=80, height=24, color_system=None)
    box = Sandbox(Plan(nodes=node_manifests(2), schedules=False, seed=1))
    await box.start()
    try:
        spec = {"containers": [{"name": "main", "image": "app"}]}
        box.api.create(PODS, "default", {"metadata": {"name": "web"}, "spec": spec})
        async with asyncio.timeout(60):
            while not waiting(box.scheduler).active:
                await asyncio.sleep(0.01)
        with screen.capture() as captured:
            screen.print(view(box, screen))
        return captured.get()
    finally:
        await box.stop()


def test_without_a_scheduler_inside_the_screen_says_so() -> None:
    told = asyncio.run(a_sandbox_without_a_scheduler())
    assert "The sandbox's own scheduler is off: 1 pod waiting for another." in told


@pytest.mark.parametrize("saying", ["", SAYING], ids=["silent", "saying"])
@pytest.mark.parametrize("nodes", [2, 9, 30])
def test_nodes_queue_and_the_last_decision_are_all_on_the_screen(nodes: int, saying: str) -> None:
    screens = [Console(width=width, height=height, color_system=None) for width, height in SCREENS]
    seen = asyncio.run(a_sandbox_with_six_pods_seen_on(screens, nodes=nodes, saying=saying))
    for screen, told in zip(screens, seen, strict=True):
        assert len(told.splitlines()) <= screen.height, told
        assert "cordoned" in told.partition("Remarks")[2], told
        assert "unschedulable 0" in told
        assert "default/web-5" in told, told
        assert ("none of them fuller" in told) == (told.count("node-") - told.count("on node-") < nodes), told

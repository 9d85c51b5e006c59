"""Playing a story in a sandbox, at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.sandbox.scenarios.scenario import Scenario, Stage


async def play(scenario: Scenario, stage: Stage, say: Callable[[str], None]) -> None:
    """Say and do everything at its time, and return when the story is over."""
    running = asyncio.get_running_loop()
    began = running.time()
    for step in scenario.steps:
        await asyncio.sleep(began + step.at - running.time())
        say(step.says)
        step.do(stage)
    await asyncio.sleep(began + scenario.seconds - running.time())

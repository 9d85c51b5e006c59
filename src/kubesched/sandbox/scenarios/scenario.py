"""A story: steps at certain seconds, each with a sentence and a change to the cluster; and how it is played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kubesched.api.kinds import Object
from kubesched.sandbox.api import Api


class Machines(Protocol):
    """The nodes, as far as a story can do something to them."""

    def fail(self, name: str) -> None: ...

    def recover(self, name: str) -> None: ...


@dataclass(frozen=True)
class Stage:
    """What a story plays on."""

    api: Api
    machines: Machines


@dataclass(frozen=True)
class Step:
    """At this second, say this and do that."""

    at: float
    says: str
    do: Callable[[Stage], None]


@dataclass(frozen=True)
class Scenario:
    """Steps in order of time; after `seconds` the story is over."""

    name: str
    about: str
    nodes: tuple[Object, ...]
    steps: tuple[Step, ...]
    seconds: float


async def play(scenario: Scenario, stage: Stage, say: Callable[[str], None]) -> None:
    """Say and do everything at its time, and return when the story is over."""
    running = asyncio.get_running_loop()
    began = running.time()
    for step in scenario.steps:
        await asyncio.sleep(began + step.at - running.time())
        say(step.says)
        step.do(stage)
    await asyncio.sleep(began + scenario.seconds - running.time())

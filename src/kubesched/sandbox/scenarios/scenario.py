"""A story: steps at certain seconds, each with a sentence and something that is done to the cluster."""

from __future__ import annotations

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

"""What goes wrong during a soak: the API server misbehaves for a while, then not, at random but by a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar
from urllib.request import Request, urlopen

import msgspec
from bench.processes import ApiServer

from kubesched_sandbox.http import Rule

_PALETTE = (
    Rule(what="drop-watch", probability=0.01),
    Rule(what="delay", probability=0.1, seconds=0.5),
    Rule(what="delay", probability=0.05, seconds=3.0, resource="pods/binding"),
    Rule(what="410", probability=0.005, verb="watch"),
    Rule(what="409", probability=0.1, resource="pods/binding"),
    Rule(what="429", probability=0.1),
    Rule(what="500-before", probability=0.1),
    Rule(what="500-after", probability=0.1),
    Rule(what="500-after", probability=0.5, resource="pods/binding"),
    Rule(what="duplicate", probability=0.1),
    Rule(what="reorder", probability=0.1),
    Rule(what="freeze", probability=0.02, resource="pods/binding", count=20),
    Rule(what="freeze", probability=0.002, verb="watch", count=2),
    Rule(what="500-before", probability=0.5, resource="leases"),
    Rule(what="500-after", probability=0.5, resource="resourceclaims/status"),
    Rule(what="409", probability=0.3, resource="resourceclaims/status"),
)
_REAL_PALETTE = ("slow", "frozen", "silent", "cut", "killed", "compacted")
"""What may happen to a real API server, or on the way to it: see RealCluster."""
_MOST_AT_ONCE = 3
_CALM = (3.0, 15.0)
_TROUBLED = (3.0, 20.0)


Fault = TypeVar("Fault")


class Misfortune(Protocol):
    """Changes the faults of a server from time to time."""

    turns: Turns

    def change(self, now: float) -> None:
        """From calm to trouble, or back."""

    def end(self) -> None:
        """Nothing goes wrong any more."""


class Turns:
    """Calm and trouble in turns; `at` is when the next begins."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._is_troubled = False
        self.at = 0.0
        self.troubles = 0

    def next(self, now: float, palette: Sequence[Fault]) -> list[Fault]:
        """What goes wrong from now on."""
        self._is_troubled = not self._is_troubled
        self.at = now + self._rng.uniform(*(_TROUBLED if self._is_troubled else _CALM))
        self.troubles += self._is_troubled
        return self._rng.sample(palette, self._rng.randint(1, _MOST_AT_ONCE)) if self._is_troubled else []


class SandboxMisfortune:
    """Faults of the sandbox's API server, which misbehaves on command."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url, self._rng = url, rng
        self.turns = Turns(rng)

    def change(self, now: float) -> None:
        self._put({"rules": self.turns.next(now, _PALETTE), "seed": self._rng.randrange(2**32)})

    def end(self) -> None:
        self._put({"rules": []})

    def _put(self, document: dict[str, Any]) -> None:
        body = msgspec.json.encode(document)
        with urlopen(Request(f"{self._url}/sandbox/faults", body, method="PUT"), timeout=10) as answer:
            answer.read()


class RealMisfortune:
    """A real API server is killed, etcd forgets, and a proxy before it is slow, frozen, silent, or hangs up."""

    def __init__(self, cluster: ApiServer, rng: random.Random) -> None:
        self._cluster = cluster
        self.turns = Turns(rng)

    def change(self, now: float) -> None:
        self._cluster.ask("calm")
        if faults := self.turns.next(now, _REAL_PALETTE):
            self._cluster.ask("trouble", what=faults)

    def end(self) -> None:
        self._cluster.ask("calm")

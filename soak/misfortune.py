"""What goes wrong during a soak: the API server misbehaves for a while, then not, at random but by a seed."""

from __future__ import annotations

import random
from typing import Any
from urllib.request import Request, urlopen

import msgspec

from kubesched.sandbox.http import Rule

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
_MOST_AT_ONCE = 3
_CALM = (3.0, 15.0)
_TROUBLED = (3.0, 20.0)


class Misfortune:
    """Changes the faults of a server from time to time; `at` is when next."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url, self._rng = url, rng
        self._is_troubled = False
        self.at = 0.0
        self.troubles = 0

    def change(self, now: float) -> list[str]:
        """From calm to trouble, or back. What goes wrong from now on."""
        self._is_troubled = not self._is_troubled
        rules = self._rng.sample(_PALETTE, self._rng.randint(1, _MOST_AT_ONCE)) if self._is_troubled else []
        self.at = now + self._rng.uniform(*(_TROUBLED if self._is_troubled else _CALM))
        self.troubles += self._is_troubled
        self._put({"rules": rules, "seed": self._rng.randrange(2**32)})
        return [f"{rule.what} {rule.verb} {rule.resource}".strip() for rule in rules]

    def end(self) -> None:
        self._put({"rules": []})

    def _put(self, document: dict[str, Any]) -> None:
        body = msgspec.json.encode(document)
        with urlopen(Request(f"{self._url}/sandbox/faults", body, method="PUT"), timeout=10) as answer:
            answer.read()

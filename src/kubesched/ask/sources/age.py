"""How old the answers are: what the cluster was read from, and whether its watches are open."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from kubesched.api.errors import UserError


@dataclass(frozen=True, slots=True)
class Behind:
    """A kind of objects that may have changed since, as its watch is not open."""

    kind: str
    seconds: float
    """Since when."""
    why: str


@dataclass(frozen=True, slots=True)
class ClusterAge:
    """What an answer rests on."""

    origin: str
    source: Literal["watch", "files"]
    age_seconds: float
    """How long ago the view of the cluster was last known to be current; 0 while all watches are open."""
    behind: tuple[Behind, ...] = ()
    """Kinds whose watch is broken."""
    unreadable: tuple[str, ...] = ()
    """Kinds that may not be read, with what follows from that."""


class NotReadyError(UserError):
    """The cluster has not been read yet; the lines say what is missing."""


class ClusterFeed(Protocol):
    """Where a cluster comes from, as far as answers tell it."""

    def age(self) -> ClusterAge:
        """How old the view of it is now. NotReadyError before there is a whole one."""


class Files:
    """Manifests or a snapshot, which stay as they were read."""

    def __init__(self, origin: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._origin = origin
        self._clock = clock
        self._read_at = clock()

    def age(self) -> ClusterAge:
        return ClusterAge(self._origin, "files", round(self._clock() - self._read_at, 1))

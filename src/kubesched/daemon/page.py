"""The view of a replica for the web page of --ui-port, which imports this module and `shadow`, and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.daemon.completion import Completed
from kubesched.daemon.replica import Replica
from kubesched.daemon.serving.endpoints import Call
from kubesched.daemon.serving.server import ServedPage


@dataclass(frozen=True)
class ObservedReplica:
    """A replica that a page shows, to be touched only in the thread that schedules."""

    replica: Replica
    settings: Completed
    call: Call
    """Calls a function in that thread, between two things that happen there."""
    leads: Callable[[], bool]
    """Whether this replica holds the lease."""


MakePage = Callable[[ObservedReplica], ServedPage]
"""Makes the page. Its package is above this one, so the command that starts the daemon brings it."""

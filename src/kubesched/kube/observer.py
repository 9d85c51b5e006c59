"""Observers of requests and queues: the base classes do nothing, metrics override them."""

from __future__ import annotations

NO_ANSWER = "<error>"
"""The code of a request that got no answer, as rest_client_requests_total has it."""


class Observer:
    """Is called for every request and every attempt at it. `verb` is the HTTP method, as in upstream's metrics."""

    def answered(self, verb: str, host: str, code: str, waited: float | None = None) -> None:
        """An attempt ended with this code, or NO_ANSWER.

        Before it, the request waited so many seconds for the limits of this client. A watch knows none.
        """

    def finished(self, verb: str, host: str, seconds: float, sent: int, received: int | None) -> None:
        """A request that is no watch is over: limits, attempts and pauses took so long. Sizes are those of the bodies.

        Where there was no answer, there is no size of it.
        """

    def retried(self, verb: str, host: str, code: str) -> None:
        """An attempt after the first ended with this code."""

    def plugin_called(self, exit_code: int, status: str) -> None:
        """An exec plugin ran, or could not be."""


class QueueObserver:
    """Is called for a queue that is worked off in the background; depths are those after the fact."""

    def added(self, depth: int) -> None: ...

    def taken(self, depth: int, waited: float) -> None: ...

    def done(self, seconds: float) -> None: ...

    def retried(self) -> None: ...

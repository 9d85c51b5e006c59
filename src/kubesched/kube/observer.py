"""Observers of requests and queues: the base classes do nothing, metrics override them."""

from __future__ import annotations

NO_ANSWER = "<error>"
"""The code of a request that got no answer, as rest_client_requests_total has it."""


class Observer:
    """Is called for every request and every try of it. `verb` is the HTTP method, as in client-go's metrics."""

    def answered(self, verb: str, host: str, code: str, waited: float | None = None) -> None:
        """A try ended with this code, or NO_ANSWER.

        Before it, the request `waited` so many seconds for the limits of this client; None for a watch, which has none.
        """

    def finished(self, verb: str, host: str, seconds: float, sent: int, received: int | None) -> None:
        """A request that is no watch is over, after so many seconds with all its limits, tries and pauses.

        `sent` and `received` are the sizes of the bodies; `received` is None if there was no answer.
        """

    def retried(self, verb: str, host: str, code: str) -> None:
        """A try after the first ended with this code."""

    def plugin_called(self, exit_code: int, status: str) -> None:
        """An exec plugin ran, or could not be run."""


class QueueObserver:
    """Is called for a queue that is worked off in the background. `depth` is the number of items afterwards."""

    def added(self, depth: int) -> None: ...

    def taken(self, depth: int, waited: float) -> None: ...

    def done(self, seconds: float) -> None: ...

    def retried(self) -> None: ...

"""Metrics of the API client, and of queues that are worked off in the background."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubesched.daemon.metrics.registry import LabelValues, MetricsRegistry, alike
from kubesched.kube.observer import Observer, QueueObserver

Answered = tuple[LabelValues, float | None]
"""An attempt is over: code, verb and host; seconds that it waited for the client's own limits, if it has any."""

Finished = tuple[LabelValues, tuple[float, int, int | None]]
"""A request is over: verb and host; seconds, bytes sent and received."""


class RestClientMetrics(Observer):
    """An observer of the API client."""

    def __init__(self, registry: MetricsRegistry) -> None:
        family = registry.family
        self._seconds = family("rest_client_request_duration_seconds")
        self._sent = family("rest_client_request_size_bytes")
        self._received = family("rest_client_response_size_bytes")
        self._retries = family("rest_client_request_retries_total")
        self._plugin_calls = family("rest_client_exec_plugin_call_total")
        self._requests = family("rest_client_requests_total")
        self._throttled = family("rest_client_rate_limiter_duration_seconds")
        self._answered = registry.batch(self._count_answered)
        self._finished = registry.batch(self._count_finished)

    def answered(self, verb: str, host: str, code: str, waited: float | None = None) -> None:
        self._answered.note(((code, verb, host), waited))

    def finished(self, verb: str, host: str, seconds: float, sent: int, received: int | None) -> None:
        self._finished.note(((verb, host), (seconds, sent, received)))

    def retried(self, verb: str, host: str, code: str) -> None:
        self._retries.child(code, verb, host).inc()

    def plugin_called(self, exit_code: int, status: str) -> None:
        self._plugin_calls.child(str(exit_code), status).inc()

    def _count_answered(self, attempts: list[Answered]) -> None:
        for values, waits in alike(attempts).items():
            self._requests.inc(values, len(waits))
            self._throttled.observe_all(values[1:], [waited for waited in waits if waited is not None])

    def _count_finished(self, requests: list[Finished]) -> None:
        for values, measurements in alike(requests).items():
            seconds, sent, received = zip(*measurements)
            self._seconds.observe_all(values, seconds)
            self._sent.observe_all(values, sent)
            self._received.observe_all(values, [size for size in received if size is not None])


def threadsafe(observer: Observer, post: Callable[..., None]) -> Observer:
    """An observer that passes everything on to one that lives in another thread: metrics have no locks.

    `post` has a function called with its arguments in that thread.
    """
    passing = Observer()
    for name in ("answered", "finished", "retried", "plugin_called"):
        setattr(passing, name, partial(post, getattr(observer, name)))
    return passing


class WorkQueueMetrics(QueueObserver):
    """A queue by name: what came, what waits, and how long things took."""

    def __init__(self, registry: MetricsRegistry, name: str) -> None:
        self._adds = registry.family("workqueue_adds_total").child(name)
        self._depth = registry.family("workqueue_depth").child(name)
        self._retries = registry.family("workqueue_retries_total").child(name)
        self._waits = registry.batch(registry.family("workqueue_queue_duration_seconds").child(name).observe_all)
        self._works = registry.batch(registry.family("workqueue_work_duration_seconds").child(name).observe_all)

    def added(self, depth: int) -> None:
        self._adds.inc()
        self._depth.set(depth)

    def taken(self, depth: int, waited: float) -> None:
        self._depth.set(depth)
        self._waits.note(waited)

    def done(self, seconds: float) -> None:
        self._works.note(seconds)

    def retried(self) -> None:
        self._retries.inc()

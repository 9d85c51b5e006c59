"""A trace per attempt: its root span begins with the attempt, and all others are made when it is over."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter, time_ns
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, StatusCode, Tracer, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kubesched.api.pod import Pod
from kubesched.daemon.log import VALUES, values_of
from kubesched.daemon.tracing.parts import CURRENT, AttemptPart, TracedStopwatch
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Done
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided
from kubesched.scheduler.listener import SchedulerListener

TRACEPARENT = "tracing.k8s.io/traceparent"
"""The annotation with the context of the trace that made the pod, as W3C writes it; proposed by KEP-5915."""

_PROPAGATOR = TraceContextTextMapPropagator()
_BROKEN_OFF = "broken off"
_ERRORS = (None, AttemptOutcome.ERROR, AttemptOutcome.BIND_ERROR)


class AttemptTracing(SchedulerListener):
    """Makes the spans of attempts. Comes after `SchedulerMetrics`, and replaces the stopwatch of the attempt."""

    def __init__(self, tracer: Tracer, draw: Callable[[], bool], has_room: Callable[[int], bool]) -> None:
        """`draw`: whether to trace an attempt at a pod that no sampled trace made; `has_room`: for so many spans."""
        self._tracer = tracer
        self._draw = draw
        self._has_room = has_room
        self.under_way: dict[str, TracedStopwatch] = {}
        """The latest attempt at each pod, by key, where that is traced."""

    def stamp(self, record: logging.LogRecord) -> bool:
        """A filter that passes all lines. Those of a traced attempt, or about its pod, get the ids of its span."""
        values = values_of(record) or {}
        watch = CURRENT.get() or self.under_way.get(str(values.get("pod")))
        if watch is not None:
            context = watch.span.get_span_context()
            ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            setattr(record, VALUES, {**values, **ids})
        return True

    def popped(self, attempt: Attempt) -> None:
        pod = attempt.queued.pod
        links = _links_of(pod)
        if not (any(link.context.trace_flags.sampled for link in links) or self._draw()):
            return
        attributes = {"k8s.pod.name": pod.name, "k8s.namespace.name": pod.namespace, "k8s.pod.uid": pod.uid}
        now = time_ns()
        span = self._tracer.start_span("SchedulePod", Context(), attributes=attributes, links=links, start_time=now)
        attempt.watch = self.under_way[pod.key] = TracedStopwatch(perf_counter, span, now)

    def group_decided(self, attempt: GroupAttempt) -> None:
        watches = [watch for member in attempt.attempts if (watch := _watch_of(member)) is not None]
        if not watches:
            return
        assert isinstance(attempt.state, GroupDecided)
        first, links = watches[0], [Link(watch.span.get_span_context()) for watch in watches]
        began = first.nanoseconds(first.started)
        about = {"kubesched.pod_group": attempt.queued.key, "kubesched.outcome": attempt.state.result}
        span = self._tracer.start_span("SchedulePodGroup", Context(), attributes=about, links=links, start_time=began)
        for watch in watches:
            watch.span.add_link(span.get_span_context())
        span.end(first.nanoseconds(perf_counter()))

    def decided(self, attempt: Attempt) -> None:
        if isinstance(attempt.state, Done):  # skipped
            self.finished(attempt)

    def finishing(self, attempt: Attempt) -> None:
        CURRENT.set(_watch_of(attempt))  # in the task that finishes this attempt, and so for all that it calls

    waiting = finishing

    def finished(self, attempt: Attempt) -> None:
        watch, key, outcome = _watch_of(attempt), attempt.queued.pod.key, attempt.outcome
        if watch is None:
            return
        if self.under_way.get(key) is watch:
            del self.under_way[key]
        if not self._has_room(len(watch.parts) + 1):
            return
        self._make_spans(watch)
        watch.span.set_attributes({"kubesched.outcome": outcome or _BROKEN_OFF, **_attributes_of(attempt)})
        if outcome in _ERRORS:
            watch.span.set_status(StatusCode.ERROR, _BROKEN_OFF if attempt.failure is None else attempt.failure.message)
        watch.span.end(watch.nanoseconds(perf_counter()))

    broken_off = finished

    def _make_spans(self, watch: TracedStopwatch) -> None:
        """A part is below the smallest phase or plugin in whose time it falls."""
        root = set_span_in_context(watch.span, Context())
        around: list[tuple[AttemptPart, Context]] = []
        for part in sorted(watch.parts, key=lambda part: (part.started, -part.ended)):
            while around and around[-1][0].ended < part.ended:
                around.pop()
            span = self._tracer.start_span(
                part.name,
                around[-1][1] if around else root,
                kind=SpanKind.CLIENT if part.is_call else SpanKind.INTERNAL,
                attributes=part.attributes,
                start_time=watch.nanoseconds(part.started),
            )
            if part.error:
                span.set_status(StatusCode.ERROR, part.error)
            span.end(watch.nanoseconds(part.ended))
            if not part.is_call:
                around.append((part, set_span_in_context(span, Context())))


def _watch_of(attempt: Attempt) -> TracedStopwatch | None:
    return attempt.watch if isinstance(attempt.watch, TracedStopwatch) else None


def _links_of(pod: Pod) -> list[Link]:
    parent = pod.metadata.annotations.get(TRACEPARENT)
    if parent is None:
        return []
    context = get_current_span(_PROPAGATOR.extract({"traceparent": parent}, Context())).get_span_context()
    return [Link(context)] if context.is_valid else []


def _attributes_of(attempt: Attempt) -> dict[str, Any]:
    """The attempt, and its result."""
    decision, failure = attempt.decision, attempt.failure
    attributes = {
        "kubesched.profile": attempt.queued.pod.spec.scheduler_name,
        "kubesched.attempt": attempt.queued.attempts,
        "kubesched.queue": attempt.popped_from,
        "k8s.node.name": attempt.node,
        "kubesched.nodes.evaluated": decision and decision.evaluated,
        "kubesched.nodes.feasible": decision and decision.feasible,
        "kubesched.message": failure and failure.message,
        "kubesched.nominated_node": failure and failure.nominated,
        "kubesched.victims": [victim.pod.key for victim in attempt.victims],
    }
    return {name: value for name, value in attributes.items() if value not in (None, "", [])}

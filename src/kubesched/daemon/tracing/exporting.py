"""Traces of one scheduler, sent to an OTLP receiver; spans that cannot be sent are lost, and counted."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import Iterable, Sequence

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from kubesched import __version__
from kubesched.daemon.tracing.configuration import MILLION, TracingConfiguration
from kubesched.daemon.tracing.listener import AttemptTracing
from kubesched.daemon.tracing.parts import TracedClient, trace_extender
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.client import ClusterClient

SERVICE = "kubesched"
MOST_WAITING = 8192
"""Spans that wait to be sent; beyond that, attempts that end lose theirs."""
SEND_WITHIN = 5.0
"""Seconds after which a batch that could not be sent is given up."""
STOP_WITHIN = 2.0
"""Seconds that spans which are left get at the end."""


class CountingExporter(OTLPSpanExporter):
    """Counts the spans that it takes, and those that it could not send. Runs in the thread of the processor."""

    taken = failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.failed += len(spans)
        return result


class Tracing:
    """Traces a scheduler by a listener, a client, extenders and a filter of the log. Call `stop` at the end."""

    def __init__(self, configuration: TracingConfiguration) -> None:
        """The receiver need not be there."""
        self.exporter = CountingExporter(endpoint=configuration.endpoint, insecure=True, timeout=SEND_WITHIN)
        self._passed = 0
        self.dropped = 0
        """Spans that were lost because too many others waited."""
        # The listener decides what is sampled; the rest does not even become a span.
        self._provider = TracerProvider(ALWAYS_ON, Resource.create({"service.name": SERVICE}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self.exporter, max_queue_size=2 * MOST_WAITING))
        share = configuration.sampling_rate_per_million / MILLION
        tracer = self._provider.get_tracer(SERVICE, __version__)
        self.listener = AttemptTracing(tracer, lambda: random.random() < share, self._has_room)
        for handler in logging.getLogger().handlers:
            handler.addFilter(self.listener.stamp)

    def _has_room(self, spans: int) -> bool:
        """Whether so many more spans may wait to be sent; if not, they are dropped."""
        if self._passed - self.exporter.taken + spans > MOST_WAITING:
            self.dropped += spans
            return False
        self._passed += spans
        return True

    def trace_calls(self, client: ClusterClient, extenders: Iterable[HTTPExtender]) -> ClusterClient:
        """The client to use instead of this one. The extenders are changed themselves."""
        for extender in extenders:
            trace_extender(extender, self.listener.under_way)
        return TracedClient(client)

    async def stop(self) -> None:
        """Send what is left, if that does not take long."""
        # A daemon thread does not keep the process from ending, as one of an executor would.
        stopping = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        stopping.start()
        await asyncio.to_thread(stopping.join, STOP_WITHIN)

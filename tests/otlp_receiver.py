"""An OTLP receiver in the process of the test: a gRPC server that decodes the official messages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SpanPath = tuple[str, ...]
_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


class OtlpReceiver:
    """Keeps all spans that it is sent. To be stopped."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resource: dict[str, Any] = {}
        self._server = grpc.server(ThreadPoolExecutor(2))
        export = grpc.unary_unary_rpc_method_handler(
            self._export,
            request_deserializer=ExportTraceServiceRequest.FromString,
            response_serializer=ExportTraceServiceResponse.SerializeToString,
        )
        service = grpc.method_handlers_generic_handler(_SERVICE, {"Export": export})
        self._server.add_generic_rpc_handlers((service,))
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _export(self, request: ExportTraceServiceRequest, context: object) -> ExportTraceServiceResponse:
        for resource_spans in request.resource_spans:
            self.resource = attributes_of(resource_spans.resource)
            for scope_spans in resource_spans.scope_spans:
                self.spans += scope_spans.spans
        return ExportTraceServiceResponse()

    def stop(self) -> None:
        self._server.stop(grace=None).wait()

    def attempts(self, pod: str) -> list[Span]:
        """The root spans of attempts at a pod, in order."""
        roots = [span for span in list(self.spans) if span.name == "SchedulePod"]
        mine = [span for span in roots if attributes_of(span)["k8s.pod.name"] == pod]
        return sorted(mine, key=lambda span: span.start_time_unix_nano)

    def paths(self, root: Span) -> dict[SpanPath, Span]:
        """All spans below a root, by their names from there."""
        found: dict[SpanPath, Span] = {}
        names: dict[bytes, SpanPath] = {root.span_id: ()}
        trace = [span for span in self.spans if span.trace_id == root.trace_id and span.span_id != root.span_id]
        while trace:
            below = [span for span in trace if span.parent_span_id in names]
            assert below, f"no parent: {[span.name for span in trace]}"
            for span in below:
                names[span.span_id] = (*names[span.parent_span_id], span.name)
                found[names[span.span_id]] = span
                trace.remove(span)
        return found


def attributes_of(described: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in described.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)

"""Traces of attempts by OpenTelemetry, which is imported only once `tracing_of` is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.api.errors import UserError
from kubesched.daemon.tracing.configuration import TracingConfiguration

if TYPE_CHECKING:
    from kubesched.daemon.tracing.exporting import Tracing


def tracing_of(configuration: TracingConfiguration, *, asked_by: str) -> Tracing:
    """An object that traces a scheduler. UserError, with the flag `asked_by`, if OpenTelemetry is not installed."""
    try:
        from kubesched.daemon.tracing.exporting import Tracing
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("opentelemetry", "grpc", "google")):
            raise
        raise UserError(
            f"{asked_by}: the packages of the extra `otel` are not installed: see docs/tracing.md"
        ) from error
    return Tracing(configuration)

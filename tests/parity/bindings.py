"""Pods as the recordings bind them: one start time after another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from kubesched.api.pod import Pod

_FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def bound_pod(pod: Pod, node_name: str, number: int) -> Pod:
    """The pod as the API server would show it after the number-th binding."""
    started = (_FIRST + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    status = msgspec.structs.replace(pod.status, nominated_node_name="", start_time=started)
    return msgspec.structs.replace(pod, spec=spec, status=status)

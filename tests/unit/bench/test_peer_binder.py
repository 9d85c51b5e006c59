"""The scheduler that decides nothing."""

from __future__ import annotations

import msgspec
from bench.peer.binder import pods_to_bind


def _line(event: str, name: str, node: str = "") -> bytes:
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    pod = {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": {"phase": "Pending"}}
    return msgspec.json.encode({"type": event, "object": pod})


def test_binder_takes_new_pods_without_a_node_alone() -> None:
    lines = [
        _line("ADDED", "new"),
        _line("ADDED", "placed", "node-1"),
        _line("MODIFIED", "tried"),
        _line("DELETED", "gone"),
    ]
    assert [(pod.name, pod.uid) for pod in pods_to_bind(lines)] == [("new", "uid-new")]

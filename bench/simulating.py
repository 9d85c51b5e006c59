"""Measuring `kubesched simulate` as a user would run it: a process of its own, with the manifests to read first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NODES = 5000
PODS = 50_000
REPLICAS = 500

Json = dict[str, Any]


def cpu_seconds(kind: str) -> float:
    """CPU seconds to place 50,000 pods on 5,000 nodes."""
    items = [*map(_node, range(NODES)), *(_pods() if kind == "pods" else _deployments())]
    return _simulated(items, f"{PODS} placed, 0 pending")


def storm_cpu_seconds(nodes: int) -> float:
    """CPU seconds until as many urgent pods as there are nodes, all of them full, have taken a node each."""
    items = [*map(_node, range(nodes)), *_lesser_pods(nodes), *_urgent_pods(nodes)]
    return _simulated(items, f"{nodes} placed, 0 pending")


def _simulated(items: list[Json], outcome: str) -> float:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "cluster.json")
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        before = os.times()
        command = [sys.executable, "-m", "kubesched", "simulate", "-f", str(path)]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        after = os.times()
    assert outcome in result.stdout, result.stdout[:200]
    return after.children_user + after.children_system - before.children_user - before.children_system


def _lesser_pods(nodes: int) -> Iterable[Json]:
    for i in range(4 * nodes):
        meta = {"name": f"lesser-{i}", "namespace": "default"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": _spec("3600m", nodeName=f"node-{i % nodes}"),
        }


def _urgent_pods(nodes: int) -> Iterable[Json]:
    name = {"name": "urgent"}
    yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": name, "value": 10}
    for i in range(nodes):
        meta = {"name": f"urgent-{i}", "namespace": "default"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec("12", priorityClassName="urgent")}


def _node(i: int) -> Json:
    name = f"node-{i}"
    offered = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{i % 3}"}
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _pods() -> Iterable[Json]:
    for i in range(PODS):
        meta = {"name": f"pod-{i}", "namespace": "default"}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec()}


def _deployments() -> Iterable[Json]:
    for i in range(PODS // REPLICAS):
        labels = {"app": f"app-{i}"}
        template = {"metadata": {"labels": labels}, "spec": _spec()}
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"app-{i}"}, "spec": spec}


def _spec(cpu: str = "500m", **more: str) -> Json:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}], **more}

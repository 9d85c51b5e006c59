"""Hollow nodes: real kubelets that run no containers (kubemark), so that pods are admitted, run and end."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from bench.peer.client import fetch
from bench.peer.control_plane import ADMIN, ControlPlane, Server
from bench.processes import free_port, wait_for
from msgspec import json

_LONGEST_START = 120.0
_ZONES = 2


def start_nodes(plane: ControlPlane, count: int, running: ExitStack) -> None:
    """Nodes that are ready. They end with the stack."""
    kubeconfig = plane.kubeconfig(ADMIN)
    servers = [running.enter_context(_node(plane.folder, kubeconfig, number)) for number in range(count)]
    wait_for(
        lambda: _ready(plane) == count or not all(server.is_alive for server in servers),
        _LONGEST_START,
        f"{count} nodes to be ready",
        every=0.5,
    )
    for server in servers:
        if not server.is_alive:
            raise RuntimeError(f"a hollow node ended:\n{server.last_words()}")


def _node(folder: Path, kubeconfig: Path, number: int) -> Server:
    return Server(
        "kubemark",
        folder / f"hollow-{number}.log",
        "--morph=kubelet",
        # Without this it looks for containerd, and ends.
        "--use-host-image-service=false",
        f"--name=hollow-{number}",
        f"--kubeconfig={kubeconfig}",
        f"--kubelet-port={free_port()}",
        f"--kubelet-read-only-port={free_port()}",
        f"--node-labels=topology.kubernetes.io/zone=zone-{number % _ZONES}",
    )


def _ready(plane: ControlPlane) -> int:
    nodes = json.decode(fetch(plane.access, "/api/v1/nodes"))["items"]
    return sum(
        any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))
        for node in nodes
    )

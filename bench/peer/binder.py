"""A scheduler that decides nothing: it binds each pod to the next node once a watch shows it, and writes its Event.

What it needs is what the API server and the machine need; no scheduler can be quicker. It takes kube-scheduler's flags
and heeds two of them: `--config`, for the kubeconfig, and `--secure-port`.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvloop
import yaml

from bench.peer.client import Access, Api
from kubesched.api.kinds import EVENTS, NODES, PODS
from kubesched.kube.event_record import EventReference, new_event


class PodMetadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: PodMetadata
    spec: _Spec


class _Event(msgspec.Struct):
    type: str
    object: _Pod


_event = msgspec.json.Decoder(_Event)


async def bind_all(api: Api) -> None:
    """Bind every pod that is made from now on, until the watch ends."""
    version = msgspec.json.decode(await api.read(f"{PODS.path}?limit=1"))["metadata"]["resourceVersion"]
    stream = await api.watch(f"{PODS.path}?watch=true&resourceVersion={version}&timeoutSeconds=7200")
    nodes: Iterator[str] | None = None
    async with asyncio.TaskGroup() as writes:
        while lines := await stream.lines():
            if nodes is None:  # a workload makes its nodes before its pods
                nodes = itertools.cycle([node["metadata"]["name"] for node in await api.list(NODES)])
            for pod in pods_to_bind(lines):
                writes.create_task(_bind(api, pod, next(nodes)))


def pods_to_bind(lines: list[bytes]) -> Iterator[PodMetadata]:
    """Pods that these lines of a watch show for the first time, and without a node."""
    events = map(_event.decode, lines)
    return (event.object.metadata for event in events if event.type == "ADDED" and not event.object.spec.node_name)


async def _bind(api: Api, pod: PodMetadata, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": msgspec.to_builtins(pod), "target": target}
    await api.write(PODS.path_of(namespace=pod.namespace, name=pod.name, subresource="binding"), binding)
    event = new_event(
        EventReference("v1", "Pod", pod.namespace, pod.name, pod.uid),
        related=None,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.namespace}/{pod.name} to {node}",
        controller="binder",
        instance="binder",
        nanoseconds=time.time_ns(),
    )
    await api.write(EVENTS.path_of(namespace=pod.namespace), msgspec.to_builtins(event))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """`/readyz` and `/metrics`: yes, and none."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


async def _serve(config: Path, port: int) -> None:
    kubeconfig = yaml.safe_load(Path(yaml.safe_load(config.read_text())["clientConnection"]["kubeconfig"]).read_text())
    cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
    authority = Path(cluster["certificate-authority"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    await asyncio.start_server(_answer, "127.0.0.1", port, ssl=context)
    await bind_all(Api(Access(cluster["server"], user["token"], authority)))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in sys.argv[1:])
    uvloop.run(_serve(Path(flags["config"]), int(flags["secure-port"])))

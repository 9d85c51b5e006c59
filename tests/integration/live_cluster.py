"""A sandbox API server in a thread of its own, with a pleasant way to arrange a cluster and to look at it."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.sandbox_server import fresh_api

from kubesched.api.kinds import EVENTS, LEASES, NODES, PODS, SERVICE_ACCOUNTS, Object, Resource
from kubesched.api.quantity import parse_quantity
from kubesched.http.listen import server_context
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.http import Faults, Rule, Server, kubeconfig, self_signed, write_kubeconfig

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds that a test waits for what takes a fraction of one on a machine with nothing else to do."""
_LOOK_EVERY = 0.01


def wait_until(condition: Callable[[], Any], what: str = "", *, within: float = PATIENCE) -> Any:
    """The first value of the condition that is true. AssertionError if there is none in time."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {what or condition}"
        time.sleep(_LOOK_EVERY)
    return value


class LiveCluster:
    """Objects are given and shown as the API has them. Every method may be called from the thread of the test."""

    def __init__(
        self,
        directory: Path,
        *,
        token: str | None = None,
        tls: bool = False,
        context: ssl.SSLContext | None = None,
        faults: Faults | None = None,
    ) -> None:
        """With `tls`, a certificate is made; or there is one already in the `context` to serve with."""
        self.token = token
        self.faults = faults or Faults(seed=1)
        self.bindings: Counter[tuple[str, str]] = Counter()
        """How often a pod came to a node, by the name and the uid of the pod."""
        self.overcommitted: list[str] = []
        """Nodes that had more on them than they can take, at the moment when that happened."""
        self._directory = directory
        self._numbers = itertools.count()
        self.authority: bytes | None = None
        self._tls = context
        if tls:
            self._make_certificate()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sandbox-server")
        self._thread.start()
        self._server: Server | None = None
        self.port = 0
        self.start()

    # The server

    def start(self, api: Api | None = None) -> None:
        """Serve this cluster, or an empty one; at the address where it was before, if it was."""
        self.api = api or fresh_api()
        self._stop_listening = self.api.subscribe([PODS], self._noted, replay=False)
        options = {"port": self.port, "token": self.token, "tls": self._tls, "faults": self.faults}
        server = Server(self.api, **options)  # type: ignore[arg-type]
        self._run(server.start())
        self._server, self.port = server, server.port

    def stop(self) -> Api:
        """Serve no more. What is returned can be served again."""
        if self._server is not None:
            server, self._server = self._server, None
            self._stop_listening()
            self._run(server.stop())
        return self.api

    def close(self) -> None:
        self.stop()
        self._run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        assert self._server is not None
        return self.call(lambda: self._server.watchers if self._server else 0)

    def kubeconfig(self, **changes: Any) -> Path:
        """A new kubeconfig for this server; `token` and `authority` may be others than those it goes by."""
        wanted = {"token": self.token, "authority": self.authority, **changes}
        path = self._directory / f"kubeconfig-{next(self._numbers)}"
        write_kubeconfig(path, kubeconfig(self.url, **wanted))
        return path

    def token_of_service_account(self) -> str:
        """A new token of somebody who is not an administrator."""
        assert self._server is not None
        tokens, account = self._server.tokens, self.api.get(SERVICE_ACCOUNTS, "default", "default")
        return str(self.call(lambda: tokens.issue(account, {}))["status"]["token"])

    def misbehave(self, *rules: Rule) -> None:
        """Faults from now on; none to behave again."""
        self.call(lambda: self.faults.replace(rules))

    def happened(self) -> list[int]:
        """How often each of the faults came about."""
        status = self.call(self.faults.status)
        return [rule["happened"] for rule in status["rules"]]  # type: ignore[attr-defined]

    def call(self, function: Callable[[], T]) -> T:
        """Run this where the server runs: between two requests."""

        async def called() -> T:
            return function()

        return self._run(called())

    # What is in it

    def create(self, resource: Resource, obj: Object, namespace: str = "") -> Object:
        return self.call(lambda: self.api.create(resource, namespace, obj))

    def patch(self, resource: Resource, namespace: str, name: str, patch: Object, subresource: str = "") -> Object:
        return self.call(lambda: self.api.patch(resource, namespace, name, patch, subresource=subresource))

    def delete(self, resource: Resource, namespace: str, name: str, *, grace: int | None = None) -> None:
        self.call(lambda: self.api.delete(resource, namespace, name, grace=grace))

    def add_node(self, name: str, *, cpu: str = "4", labels: dict[str, str] | None = None) -> Object:
        resources = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        return self.create(NODES, {"metadata": metadata, "status": {"capacity": resources, "allocatable": resources}})

    def add_nodes(self, count: int, *, cpu: str = "4") -> None:
        for number in range(count):
            self.add_node(f"node-{number}", cpu=cpu)

    def add_pod(self, name: str, *, cpu: str = "100m", metadata: Object | None = None, **spec: Any) -> Object:
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
        pod = {
            "metadata": {"name": name, **(metadata or {})},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
        }
        return self.create(PODS, pod, "default")

    def add_pods(self, count: int, *, prefix: str = "pod", cpu: str = "100m") -> list[str]:
        names = [f"{prefix}-{number}" for number in range(count)]
        for name in names:
            self.add_pod(name, cpu=cpu)
        return names

    def pod(self, name: str) -> Object:
        return self.call(lambda: self.api.get(PODS, "default", name))

    def pods(self) -> list[Object]:
        return self.call(lambda: self.api.select(PODS))

    def has_pod(self, name: str) -> bool:
        return self.call(lambda: self.api.find(PODS, "default", name)) is not None

    def node_of(self, name: str) -> str:
        """Where a pod is bound to; empty if it is not."""
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def condition(self, name: str, kind: str = "PodScheduled") -> Object:
        conditions = self.pod(name).get("status", {}).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.call(lambda: self.api.select(EVENTS)) if event.get("reason") == reason]

    def lease(self, name: str = "kube-scheduler") -> Object:
        """The spec of a lease; empty if there is none."""
        found = self.call(lambda: self.api.find(LEASES, "kube-system", name))
        return {} if found is None else dict(found["spec"])

    @property
    def bound(self) -> int:
        return sum(1 for pod in self.pods() if pod["spec"].get("nodeName"))

    @property
    def all_bound(self) -> bool:
        return all(pod["spec"].get("nodeName") for pod in self.pods())

    def bind(self, name: str, node: str) -> None:
        """Bind a pod as some other scheduler would."""
        self.call(lambda: self.api.bind("default", name, {"target": {"kind": "Node", "name": node}}))

    # Behind the scenes

    def _noted(self, event: ApiEvent) -> None:
        before = (event.old or {}).get("spec", {}).get("nodeName")
        node = event.object["spec"].get("nodeName")
        if event.type == "DELETED" or not node or before:
            return
        metadata = event.object["metadata"]
        self.bindings[metadata["name"], metadata["uid"]] += 1
        self._look_for_overcommitment(node)

    def _look_for_overcommitment(self, name: str) -> None:
        node = self.api.find(NODES, "", name)
        if node is None:
            return
        there = [pod for pod in self.api.select(PODS) if pod["spec"].get("nodeName") == name]
        requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in there]
        used = sum(parse_quantity(each["cpu"]).milli() for each in requests)
        allocatable = node["status"]["allocatable"]
        if used > parse_quantity(allocatable["cpu"]).milli() or len(there) > int(allocatable["pods"]):
            self.overcommitted.append(name)

    def _make_certificate(self) -> None:
        made = self_signed(["127.0.0.1", "localhost"])
        self._tls, self.authority = server_context(made), made.chain

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

"""Follows pods by a watch: which were bound or tried, and when."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from bench.peer.client import Api
from kubesched.api.kinds import PODS
from kubesched.kube.errors import KubeError

_EVERY = 0.1
"""Seconds between two looks at whether enough pods are bound."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(msgspec.Struct):
    type: str


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_bound(self) -> bool:
        return bool(self.spec.node_name)

    @property
    def was_tried(self) -> bool:
        return any(condition.type == "PodScheduled" for condition in self.status.conditions)


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[_Pod]


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Bound(NamedTuple):
    """One pod's way to its node, in seconds of the monotonic clock."""

    namespace: str
    labels: Mapping[str, str]
    created: float
    """When the request that made it went out."""
    seen: float
    """When a watch showed it first: no scheduler can know it earlier."""
    bound: float


_event = msgspec.json.Decoder(_Event)
_pod = msgspec.json.Decoder(_Pod)


class PodWatch:
    """Follows all pods from its start until it is stopped."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._pods: dict[str, dict[str, _Pod]] = defaultdict(dict)
        self._sent: dict[tuple[str, str], float] = {}
        self._seen: dict[tuple[str, str], float] = {}
        self._bound: dict[tuple[str, str], tuple[Mapping[str, str], float]] = {}
        self._finished: list[Bound] = []
        self.cuts = 0

    def sent(self, namespace: str, name: str, when: float) -> None:
        """The request that made this pod went out then."""
        self._sent[namespace, name] = when

    async def run(self) -> None:
        """Until cancelled; a watch that is cut begins anew with a list."""
        while True:
            with contextlib.suppress(KubeError):
                version = await self._list()
                await self._follow(version)
            self.cuts += 1
            await asyncio.sleep(_EVERY)

    async def _list(self) -> str:
        listed = msgspec.json.decode(await self._api.read(PODS.path), type=_List)
        self._pods.clear()
        for pod in listed.items:
            self._note("ADDED", pod)
        return listed.metadata.resource_version

    async def _follow(self, version: str) -> None:
        stream = await self._api.watch(f"{PODS.path}?watch=true&resourceVersion={version}&timeoutSeconds=7200")
        try:
            while lines := await stream.lines():
                for line in lines:
                    event = _event.decode(line)
                    if event.type == "ERROR":
                        return
                    self._note(event.type, _pod.decode(event.object))
        finally:
            stream.close()

    def _note(self, event: str, pod: _Pod) -> None:
        meta = pod.metadata
        key = meta.namespace, meta.name
        if event == "DELETED":
            self._pods[meta.namespace].pop(meta.name, None)
            self._forget(key)
            return
        self._pods[meta.namespace][meta.name] = pod
        now = time.monotonic()
        self._seen.setdefault(key, now)
        if pod.is_bound:
            self._bound.setdefault(key, (meta.labels, now))

    def _forget(self, key: tuple[str, str]) -> None:
        """A pod that is gone may come again under its name."""
        if key in self._bound:
            self._finished.append(self._way(key))
            del self._bound[key]
        self._sent.pop(key, None)
        self._seen.pop(key, None)

    def _way(self, key: tuple[str, str]) -> Bound:
        labels, when = self._bound[key]
        return Bound(key[0], labels, self._sent.get(key, when), self._seen[key], when)

    def bound(self, namespaces: Iterable[str], selector: Mapping[str, str], since: float) -> list[Bound]:
        """Pods of these namespaces, with these labels, that were bound since then."""
        wanted = set(namespaces)
        return [
            each
            for each in (*self._finished, *map(self._way, self._bound))
            if each.bound >= since and each.namespace in wanted and _matches(each.labels, selector)
        ]

    def count_bound(self, namespace: str, selector: Mapping[str, str] | None = None) -> int:
        return sum(pod.is_bound for pod in self._matching(namespace, selector))

    def count_tried(self, namespace: str, selector: Mapping[str, str] | None = None) -> int:
        return sum(pod.is_bound or pod.was_tried for pod in self._matching(namespace, selector))

    def names(self, namespace: str, selector: Mapping[str, str]) -> list[str]:
        return [pod.metadata.name for pod in self._matching(namespace, selector)]

    def _matching(self, namespace: str, selector: Mapping[str, str] | None) -> list[_Pod]:
        pods = self._pods[namespace].values()
        return [pod for pod in pods if _matches(pod.metadata.labels, selector)] if selector else list(pods)

    async def until_bound(self, namespace: str, count: int, selector: Mapping[str, str] | None = None) -> None:
        while self.count_bound(namespace, selector) < count:
            await asyncio.sleep(_EVERY)

    async def until_tried(self, namespace: str, count: int, selector: Mapping[str, str] | None = None) -> None:
        while self.count_tried(namespace, selector) < count:
            await asyncio.sleep(_EVERY)


def _matches(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())

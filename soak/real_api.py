"""A real API server as churn sees it: plain calls from a thread, answers from a mirror where that will do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEVICE_CLASSES, NODES, RESOURCE_SLICES, Object, Resource
from kubesched.kube.client import MERGE_PATCH, Client
from kubesched.kube.errors import ApiStatusError
from kubesched_sandbox.api.selecting import selection
from kubesched_sandbox.nodes.manifests import gpu_class, gpu_slice
from soak.churn import GPUS
from soak.mirror import Mirror

_encode = msgspec.json.Encoder().encode


class RealApi:
    """Refusals are ApiErrors, as of the sandbox; UnreachableError if the server is away."""

    def __init__(self, client: Client, mirror: Mirror, loop: asyncio.AbstractEventLoop) -> None:
        """The loop is that of the client and of the mirror."""
        self._client, self._mirror, self._loop = client, mirror, loop

    def begin(self) -> None:
        self.create(DEVICE_CLASSES, "", gpu_class())

    def add_node(self, node: Object) -> None:
        """A node with its GPUs. If the server goes away between the two, the node has none."""
        made = self.create(NODES, "", node)
        self.create(RESOURCE_SLICES, "", gpu_slice(made, GPUS))

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object:
        typed = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
        return self._done(self._client.post(resource.path_of(namespace=namespace), _encode(typed)))

    def patch(self, resource: Resource, namespace: str, name: str, patch: Any) -> Object:
        path = resource.path_of(namespace=namespace, name=name)
        return self._done(self._client.patch(path, _encode(patch), content_type=MERGE_PATCH))

    def delete(self, resource: Resource, namespace: str, name: str, *, grace: int | None = None) -> Object:
        how = {"propagationPolicy": "Background"} | ({} if grace is None else {"gracePeriodSeconds": grace})
        return self._done(self._client.delete(resource.path_of(namespace=namespace, name=name), _encode(how)))

    def select(self, resource: Resource, *, labels: str | None = None) -> list[Object]:
        """As last seen, in the order of their names."""
        wanted = selection(resource, labels)
        found = [obj for obj in self._mirror.objects(resource) if wanted.matches(obj)]
        return sorted(found, key=lambda obj: str(obj["metadata"]["name"]))

    def _done(self, request: Coroutine[Any, Any, bytes]) -> Object:
        try:
            answer: Object = msgspec.json.decode(asyncio.run_coroutine_threadsafe(request, self._loop).result())
        except ApiStatusError as error:
            raise ApiError(error.code, error.reason, str(error)) from error
        return answer

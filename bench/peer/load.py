"""Makes objects from templates: nodes, pods with and without volumes, device slices, allocations."""

from __future__ import annotations

import asyncio
import copy
import fnmatch
import random
import string
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from bench.peer.client import Api
from bench.peer.operations import CreateNodes, CreatePods
from bench.peer.pods import PodWatch
from bench.peer.templates import read_template
from kubesched.api.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, RESOURCE_CLAIMS, RESOURCE_SLICES

AT_ONCE = 30
"""Requests under way at once, as many as upstream's harness has."""
_PLAIN_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "phase": "Running",
    },
}
_PLAIN_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.1",
                "ports": [{"containerPort": 80}],
                "resources": {side: {"cpu": "100m", "memory": "500Mi"} for side in ("limits", "requests")},
            }
        ]
    },
}
_LETTERS = string.ascii_lowercase + string.digits


async def many(count: int, make: Callable[[int], Awaitable[object]]) -> None:
    """So many, several at once, in order of their numbers."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await make(number)

    async with asyncio.TaskGroup() as workers:
        for _ in range(min(AT_ONCE, count)):
            workers.create_task(worker())


async def paced(numbers: Iterable[int], per_second: float, make: Callable[[int], Awaitable[object]]) -> None:
    """One after the other at this rate; one that takes long does not hold up the next."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.TaskGroup() as under_way:
        for turn, number in enumerate(numbers):
            await asyncio.sleep(max(0.0, started + turn / per_second - loop.time()))
            under_way.create_task(_only(make(number)))


async def _only(made: Awaitable[object]) -> None:
    await made


class Load:
    """Objects of one workload; the seed decides names of nodes and who gets which device."""

    def __init__(self, api: Api, watch: PodWatch, folder: Path, seed: int = 1) -> None:
        self._api = api
        self._watch = watch
        self._folder = folder
        self._random = random.Random(seed)

    def template(self, path: str, index: int = 0, count: int = 1) -> dict[str, Any]:
        return read_template((self._folder / path).resolve()).object(index, count)

    async def nodes(self, operation: CreateNodes, prefix: str) -> None:
        async def make(index: int) -> None:
            node = self._node(operation, prefix, index)
            await self._api.create(node)
            if operation.node_allocatable_strategy:
                await self._api.create(_csi_node(node["metadata"]["name"], operation))

        await many(operation.count, make)

    def _node(self, operation: CreateNodes, prefix: str, index: int) -> dict[str, Any]:
        path = operation.node_template_path
        node = dict(self.template(path, index, operation.count) if path else _PLAIN_NODE)
        meta = dict(node.get("metadata") or {"generateName": prefix})
        meta["name"] = meta.get("name") or meta["generateName"] + "".join(self._random.choices(_LETTERS, k=8))
        labels = dict(meta.get("labels") or {}) | {"kubernetes.io/hostname": meta["name"]}
        if in_turn := operation.label_node_prepare_strategy:
            labels[in_turn.label_key] = in_turn.label_values[index % len(in_turn.label_values)]
        if unique := operation.unique_node_label_strategy:
            labels[unique.label_key] = str(uuid.UUID(int=self._random.getrandbits(128)))
        return node | {"metadata": meta | {"labels": labels}}

    async def pods(self, operation: CreatePods, namespace: str, default_template: str) -> None:
        path = operation.pod_template_path or default_template

        async def make(index: int) -> None:
            pod = self.template(path, index, operation.count) if path else _PLAIN_POD
            if operation.persistent_volume_claim_template_path:
                pod = await self._with_volume(operation, namespace, index, pod)
            sent = time.monotonic()
            name = await self._api.create(pod, namespace)
            self._watch.sent(namespace, name, sent)

        if operation.pods_per_second:
            await paced(range(operation.count), operation.pods_per_second, make)
        else:
            await many(operation.count, make)

    async def _with_volume(
        self, operation: CreatePods, namespace: str, index: int, pod: dict[str, Any]
    ) -> dict[str, Any]:
        """A claim and a volume that are bound to each other, and a pod that uses them."""
        claim = copy.deepcopy(self.template(operation.persistent_volume_claim_template_path))
        volume = copy.deepcopy(self.template(operation.persistent_volume_template_path))
        claim_name, volume_name = f"pvc-{index}", f"{namespace}-vol-{index}"
        claim.setdefault("metadata", {})["name"] = claim_name
        claim["spec"]["volumeName"] = volume_name
        volume.setdefault("metadata", {})["name"] = volume_name
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace,
            "name": claim_name,
        }
        if "csi" in volume["spec"]:
            volume["spec"]["csi"]["volumeHandle"] = volume_name
        elif "awsElasticBlockStore" in volume["spec"]:
            volume["spec"]["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
        bound = {"phase": "Bound"}
        await self._api.create(claim, namespace)
        await self._api.patch_status(PERSISTENT_VOLUME_CLAIMS, namespace, claim_name, bound)
        await self._api.create(volume)
        await self._api.patch_status(PERSISTENT_VOLUMES, "", volume_name, bound)
        mounted = {"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}
        return pod | {"spec": pod["spec"] | {"volumes": [mounted]}}

    async def driver(self, name: str, nodes: str, devices: int) -> None:
        """A slice for each node whose name matches."""
        known = await self._api.list(NODES)
        names = [node["metadata"]["name"] for node in known if fnmatch.fnmatchcase(node["metadata"]["name"], nodes)]
        await many(len(names), lambda index: self._api.create(_slice(name, names[index], devices)))

    async def allocate(self, namespace: str) -> None:
        """Each claim that has no devices yet gets some of one node."""
        slices = await self._api.list(RESOURCE_SLICES)
        claims = await self._api.list(RESOURCE_CLAIMS, namespace)
        free = [(each["spec"], device["name"]) for each in slices for device in each["spec"]["devices"]]
        self._random.shuffle(free)
        waiting = [claim for claim in claims if not claim.get("status", {}).get("allocation")]

        async def allocate(index: int) -> None:
            meta = waiting[index]["metadata"]
            request = waiting[index]["spec"]["devices"]["requests"][0]["name"]
            status = _allocation(request, *free[index])
            await self._api.patch_status(RESOURCE_CLAIMS, meta["namespace"], meta["name"], status)

        await many(len(waiting), allocate)


def _csi_node(name: str, operation: CreateNodes) -> dict[str, Any]:
    strategy = operation.node_allocatable_strategy
    assert strategy is not None
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": limit}
        for driver, limit in strategy.csi_node_allocatable.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(strategy.migrated_plugins)}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def _slice(driver: str, node: str, devices: int) -> dict[str, Any]:
    def device(index: int) -> dict[str, Any]:
        attributes = {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": index},
        }
        return {"name": f"instance-{index}", "attributes": attributes, "capacity": {"memory": {"value": "1Gi"}}}

    pool = {"name": node, "generation": 0, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [device(index) for index in range(devices)]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def _allocation(request: str, slice_spec: dict[str, Any], device: str) -> dict[str, Any]:
    given = {"request": request, "driver": slice_spec["driver"], "pool": slice_spec["pool"]["name"], "device": device}
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [slice_spec["nodeName"]]}]}
    return {"allocation": {"devices": {"results": [given]}, "nodeSelector": {"nodeSelectorTerms": [here]}}}

"""Example GPUs: a device class, and slices that publish a number of devices on each node."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.kinds import DEVICE_CLASSES, NODES, RESOURCE_SLICES, Object
from kubesched.sandbox.api import Api
from kubesched.sandbox.controllers.ownership import owner_reference

DRIVER = "gpu.example.com"
_MODEL, _MEMORY = "LATEST-GPU-MODEL", "80Gi"


def publish_gpus(api: Api, nodes: Iterable[str], count: int) -> None:
    """Give each node this many GPUs, and the cluster the class to ask for them. What is there stays."""
    if api.find(DEVICE_CLASSES, "", DRIVER) is None:
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        api.create(DEVICE_CLASSES, "", {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
    for name in nodes:
        slice_name = f"{name}-{DRIVER}"
        if api.find(RESOURCE_SLICES, "", slice_name) is None:
            node = api.get(NODES, "", name)
            api.create(RESOURCE_SLICES, "", _slice(slice_name, node, count))


def _slice(name: str, node: Object, count: int) -> Object:
    node_name = node["metadata"]["name"]
    return {
        "metadata": {"name": name, "ownerReferences": [owner_reference(NODES, node)]},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_gpu(node_name, index) for index in range(count)],
        },
    }


def _gpu(node: str, index: int) -> Object:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "index": {"int": index},
            "uuid": {"string": f"gpu-{node}-{index}"},
            "model": {"string": _MODEL},
            "driverVersion": {"version": "1.0.0"},
        },
        "capacity": {"memory": {"value": _MEMORY}},
    }

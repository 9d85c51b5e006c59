"""Hollow nodes: nodes without machines, that renew leases, fail and run pods as seen through the API.

One object plays the kubelets of thousands of them.
"""

from __future__ import annotations

from kubesched.sandbox.nodes.hollow import HollowNodes
from kubesched.sandbox.nodes.manifests import (
    DRIVER,
    DURATION,
    EXIT_CODE,
    FAILED,
    HOLLOW,
    STARTUP,
    gpu_class,
    gpu_slice,
    node_manifest,
    node_manifests,
    publish_gpus,
)

__all__ = [
    "DRIVER",
    "DURATION",
    "EXIT_CODE",
    "FAILED",
    "HOLLOW",
    "STARTUP",
    "HollowNodes",
    "gpu_class",
    "gpu_slice",
    "node_manifest",
    "node_manifests",
    "publish_gpus",
]

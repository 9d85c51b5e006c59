"""Hollow nodes: nodes without machines, that live, lose touch and run pods as far as anybody can tell from outside.

One object plays the kubelets of thousands of them.
"""

from __future__ import annotations

from kubesched.sandbox.nodes.annotations import DURATION, EXIT_CODE, FAILED, HOLLOW, STARTUP
from kubesched.sandbox.nodes.devices import DRIVER, publish_gpus
from kubesched.sandbox.nodes.hollow import HollowNodes
from kubesched.sandbox.nodes.manifests import node_manifest, node_manifests

__all__ = [
    "DRIVER",
    "DURATION",
    "EXIT_CODE",
    "FAILED",
    "HOLLOW",
    "STARTUP",
    "HollowNodes",
    "node_manifest",
    "node_manifests",
    "publish_gpus",
]

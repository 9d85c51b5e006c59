"""Workloads by name: what a pod belongs to, in one word for the command line and the page."""

from __future__ import annotations

from kubesched.api.pod import Pod


def workload_of(pod: Pod) -> str:
    """What manages the pod, or the pod itself: `shop/web`. The hash in the name of a ReplicaSet says nothing."""
    owner = pod.metadata.controller
    if owner is None:
        return pod.key
    name = owner.name
    hashed = pod.metadata.labels.get("pod-template-hash")
    if hashed and name.endswith(f"-{hashed}"):
        name = name.removesuffix(f"-{hashed}")
    return f"{pod.namespace}/{name}"

"""What owns a pod, in the words of the person who made it, and where the pod is in its life."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubesched.api.pod import Pod

WAITING, STARTING, RUNNING, UNREADY, LEAVING, DONE, FAILED = (
    "waiting", "starting", "running", "not ready", "leaving", "done", "failed",
)  # fmt: skip
PHASES = (WAITING, STARTING, RUNNING, UNREADY, LEAVING, DONE, FAILED)
_RUN_OF_CRON_JOB = re.compile(r"^(.+)-([2-9]\d{7})$")
"""Named after the minute of the run, counted since 1970."""


class WorkloadName(NamedTuple):
    """What owns pods; a pod without an owner stands for itself, as a Pod."""

    namespace: str
    kind: str
    name: str


class WantedPods(NamedTuple):
    """How many pods a workload wants; None if nodes decide that."""

    namespace: str
    kind: str
    name: str
    pods: int | None
    refusal: str = ""
    """Why the API server takes no more of them."""


def owner_of(pod: Pod) -> WorkloadName:
    """What a person would call the workload of a pod: the Deployment of a ReplicaSet, the CronJob of a Job."""
    owner = pod.metadata.controller
    if owner is None:
        return WorkloadName(pod.namespace, "Pod", pod.name)
    kind, name = owner.kind, owner.name
    if kind == "ReplicaSet":
        hashed = pod.metadata.labels.get("pod-template-hash")
        if hashed and name.endswith(f"-{hashed}"):
            kind, name = "Deployment", name.removesuffix(f"-{hashed}")
    elif kind == "Job" and (run := _RUN_OF_CRON_JOB.match(name)):
        kind, name = "CronJob", run[1]
    return WorkloadName(pod.namespace, kind, name)


def phase_of(pod: Pod, node: str) -> str:
    """Where a pod is in its life, in a word; `node` is where it is counted."""
    if pod.is_finished:
        return DONE if pod.status.phase == "Succeeded" else FAILED
    if pod.is_terminating:
        return LEAVING
    if not node:
        return WAITING
    if pod.status.phase != "Running":
        return STARTING
    is_unready = any(condition.type == "Ready" and condition.status == "False" for condition in pod.status.conditions)
    return UNREADY if is_unready else RUNNING


def owner_by_key(key: str, pod: Pod | None) -> WorkloadName:
    """The workload of a pod of which perhaps only the key is known: then it stands for itself."""
    namespace, _, name = key.partition("/")
    return owner_of(pod) if pod is not None else WorkloadName(namespace, "Pod", name)


def in_turn(key: str) -> tuple[str, int, str]:
    """By which pods are sorted: web-2 before web-10."""
    stem, _, suffix = key.rpartition("-")
    return stem, len(suffix), suffix

"""A first placement test for a cluster: its largest workloads, and what is true of them today."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.output import API_VERSION
from kubesched.ask.placement_tests.arranging import objects_of, settings_of
from kubesched.ask.placement_tests.case import (
    KIND,
    AtMost,
    Case,
    CaseCluster,
    CaseContent,
    CaseMeta,
    Expectation,
    SpreadOver,
)
from kubesched.ask.placement_tests.checks import ScheduledCluster, checks
from kubesched.ask.what_if.outcome import outcome
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.nodes import label_of

replace = msgspec.structs.replace

_WORKLOADS = 3
_PASSING = ("hash", "pod-name", "pod-index", "generation", "job-name", "controller-uid")
"""Ends of labels that are of one rollout or one pod."""
_HEAD = """# What is true of the largest workloads today. Take out what is chance, and add what has to stay true:
# landOn, neverOn, spreadOver, atMost, pending, preemptsOnly, fits, survivesLossOf.
# New manifests are held against the cluster with `manifests: [FILE, ...]`.
"""


def first_case(file: str, cluster: str, default: SchedulerConfiguration) -> str:
    """The text of a case that holds, for `file`; `cluster` is a snapshot or manifests. Raises UserError."""
    name, relative = Path(cluster).name.partition(".")[0], os.path.relpath(cluster, Path(file).parent)
    content = CaseContent(
        api_version=API_VERSION,
        kind=KIND,
        metadata=CaseMeta(name=name or "cluster"),
        cluster=CaseCluster(files=(relative,)),
        expect=(),
    )
    case = Case(file=file, number=1, content=content)
    settings = settings_of(case, default)
    found = ScheduledCluster(outcome(objects_of(case), settings), settings)
    expectations = [_true_of(found, meant) for meant in _largest(found)]
    expected = tuple(expectations) or (Expectation(fits=1),)
    return _HEAD + yaml.safe_dump(msgspec.to_builtins(replace(content, expect=expected)), sort_keys=False)


def _true_of(found: ScheduledCluster, meant: Expectation) -> Expectation:
    """All that is worth holding on to, and true."""
    expectation = meant
    for field, value in _candidates(found, meant):
        if all(check.holds for check in checks(found, replace(meant, **{field: value}))):
            expectation = replace(expectation, **{field: value})
    return expectation


def _largest(found: ScheduledCluster) -> list[Expectation]:
    """The workloads with most pods, each by the namespace and the labels that its pods share."""
    members: dict[tuple[str, str, str], list[Pod]] = {}
    for pod, _ in found.outcome.pods.values():
        owner = pod.metadata.controller
        if owner is not None and owner.kind not in ("DaemonSet", "Job", "Node"):
            members.setdefault((pod.namespace, owner.kind, owner.name), []).append(pod)
    largest = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [
        Expectation(namespace=namespace, pods=labels)
        for (namespace, _, _), pods in largest[:_WORKLOADS]
        if (labels := _shared(pods))
    ]


def _shared(pods: list[Pod]) -> dict[str, str]:
    common = set(pods[0].metadata.labels.items()).intersection(*(pod.metadata.labels.items() for pod in pods))
    return {key: value for key, value in sorted(common) if not key.endswith(_PASSING)}


def _candidates(found: ScheduledCluster, meant: Expectation) -> Iterator[tuple[str, Any]]:
    """Fields of an expectation, and values that may be true."""
    nodes = [found.node(pod) for pod, _ in found.pods(meant).values() if pod.spec.node_name]
    yield "pending", False
    pools, zones, hosts = (_counts(nodes, key) for key in ("pool", "zone", "node"))
    if len(pools) == 1:
        yield "land_on", {"pool": next(iter(pools))}
    if len(zones) > 1:
        yield "spread_over", SpreadOver(topology_key="zone", min_domains=len(zones))
        yield "survives_loss_of", "zone"
    if len(hosts) > 1:
        yield "at_most", AtMost(pods=max(hosts.values()), per="node")
    yield "fits", len(nodes) + 1


def _counts(nodes: Iterable[Node], key: str) -> Counter[str]:
    return Counter(value for node in nodes if (value := label_of(node, key)))

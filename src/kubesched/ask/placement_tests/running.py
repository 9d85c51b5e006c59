"""Runs placement tests: arranges the cluster of each case, checks what the case expects, and reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import yaml
from msgspec.structs import replace

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME, REGION, ZONE
from kubesched.ask.edits import (
    DrainNodes,
    Edit,
    FailNodes,
    RemoveNodes,
    read_added,
    read_applied,
    read_applied_objects,
    read_scale,
)
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.ask.output import API_VERSION
from kubesched.ask.placement_tests.case import (
    KIND,
    AtMost,
    Case,
    CaseCluster,
    CaseContent,
    CaseError,
    CaseMeta,
    Expectation,
    NodesOfCase,
    SpreadOver,
)
from kubesched.ask.placement_tests.checks import Check, ScheduledCluster, checks
from kubesched.ask.sources.snapshot import open_snapshot
from kubesched.ask.what_if.answer import outcome
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.simulate.manifests import load
from kubesched.simulate.nodes import label_of

_CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}

_WORKLOADS = 3
_COPIED = (ZONE, REGION)
"""Labels of nodes, which the API server puts on pods that are bound."""
_PASSING = ("hash", "pod-name", "pod-index", "generation", "job-name", "controller-uid")
"""Ends of labels that are of one rollout or one pod."""
_HEAD = """# What is true of the largest workloads today. Take out what is chance, and add what has to stay true:
# landOn, neverOn, spreadOver, atMost, pending, preemptsOnly, fits, survivesLossOf.
# New manifests are held against the cluster with `manifests: [FILE, ...]`.
"""


def objects_of(case: Case) -> tuple[KubeObject, ...]:
    """The cluster with all that the case puts on it. Raises UserError, with the case in each line."""
    content = case.content
    with located(case.place):
        objects = _cluster(case)
        for file in content.manifests:
            objects = apply_hypothetical(objects, [read_applied(case.path(file), objects)])
        if content.objects:
            objects = apply_hypothetical(objects, [read_applied_objects(content.objects, "objects", objects)])
        edits: list[Edit] = [read_scale(text) for text in content.changes.scale]
        edits += [read_added(text) for text in content.changes.add]
        edits += [FailNodes(content.changes.lose)] if content.changes.lose else []
        edits += [RemoveNodes(content.changes.gone)] if content.changes.gone else []
        edits += [DrainNodes(content.changes.drain)] if content.changes.drain else []
        return apply_hypothetical(objects, edits)


def settings_of(case: Case, default: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration of the case, else that of its snapshot, else the default. Raises UserError."""
    features = default.features
    if case.content.config:
        file = case.path(case.content.config)
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise CaseError(f"{case.place}: config: {file}: {reason}") from None
        return configuration.load(text, source=file, features=features)
    for name in case.content.cluster.files:
        snapshot = open_snapshot(case.path(name))
        if snapshot is not None and (configuration_found := snapshot.configuration()).text:
            return configuration.load(configuration_found.text, source=configuration_found.origin, features=features)
    return default


def objects_in(files: Sequence[str]) -> tuple[KubeObject, ...]:
    """What is in manifests, directories, and at most one snapshot. Raises UserError."""
    snapshots = {file: opened for file in files if (opened := open_snapshot(file)) is not None}
    if len(snapshots) > 1:
        raise CaseError(f"cluster.files: expected one snapshot at most, got {', '.join(snapshots)}")
    records = [record for snapshot in snapshots.values() for record in snapshot.read(workloads=True).records()]
    manifests = [file for file in files if file not in snapshots]
    return load(manifests, workloads=True, given=records, given_by="".join(snapshots)).objects


def _cluster(case: Case) -> tuple[KubeObject, ...]:
    objects = objects_in([case.path(file) for file in case.content.cluster.files])
    nodes = [node for pool in case.content.cluster.nodes for node in nodes_of(pool)]
    names = {obj.name for obj in objects if isinstance(obj, Node)}
    for node in nodes:
        name = node["metadata"]["name"]
        if name in names:
            raise CaseError(f"cluster.nodes: there is a node {name} already")
        names.add(name)
    edits = [read_applied_objects(nodes, "cluster.nodes", objects)] if nodes else []
    return apply_hypothetical(objects, edits)


def nodes_of(pool: NodesOfCase) -> list[Object]:
    """The nodes of a pool: `web-1`, `web-2`; of a single one the name is that of the pool."""
    nodes = []
    for i in range(pool.count):
        name = pool.name if pool.count == 1 else f"{pool.name}-{i + 1}"
        zone = {ZONE: pool.zones[i % len(pool.zones)]} if pool.zones else {}
        labels = {HOSTNAME: name, "pool": pool.name, **zone, **pool.labels}
        taints = [msgspec.to_builtins(taint) for taint in pool.taints]
        nodes.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {"capacity": {**_CAPACITY, **pool.capacity}},
            }
        )
    return nodes


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case."""

    name: str
    file: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


@dataclass(frozen=True)
class TestResults:
    """What became of all cases."""

    __test__ = False  # pytest is not to collect this class

    passed: int
    failed: int
    cases: tuple[CaseResult, ...]


def run_case(case: Case, default: SchedulerConfiguration, *, plugins: Registry | None = None) -> CaseResult:
    """Schedule what the case has, and look. Raises UserError for what cannot be read."""
    settings, seed = settings_of(case, default), case.content.seed
    cluster = ScheduledCluster(outcome(objects_of(case), settings, seed=seed, plugins=plugins), settings, seed, plugins)
    held = [check for expectation in case.content.expect for check in checks(cluster, expectation)]
    return CaseResult(case.name, case.file, tuple(held))


def results(cases: tuple[CaseResult, ...]) -> TestResults:
    passed = sum(case.holds for case in cases)
    return TestResults(passed, len(cases) - passed, cases)


def junit(results: TestResults, seconds: Mapping[tuple[str, str], float]) -> str:
    """The whole document; `seconds` has what each case took, by its file and name."""
    checks = [check for case in results.cases for check in case.checks]
    root = ElementTree.Element(
        "testsuites",
        name="kubesched test",
        tests=str(len(checks)),
        failures=str(sum(not check.holds for check in checks)),
        errors="0",
        time=f"{sum(seconds.values()):.3f}",
    )
    for case in results.cases:
        _suite(root, case, seconds.get((case.file, case.name), 0.0))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(root: ElementTree.Element, case: CaseResult, seconds: float) -> None:
    failures = sum(not check.holds for check in case.checks)
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=case.name,
        file=case.file,
        tests=str(len(case.checks)),
        failures=str(failures),
        errors="0",
        time=f"{seconds:.3f}",
    )
    for check in case.checks:
        test = ElementTree.SubElement(suite, "testcase", name=check.expected, classname=case.name, file=case.file)
        if not check.holds:
            failure = ElementTree.SubElement(test, "failure", message=check.problems[0], type="placement")
            failure.text = "\n".join((*check.problems, *check.explanation))


# -- a first case to begin with ---------------------------------------------------------------------------------------


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
    scheduled = ScheduledCluster(outcome(objects_of(case), settings), settings)
    expectations = [_true_expectation(scheduled, workload) for workload in _largest_workloads(scheduled)]
    expected = tuple(expectations) or (Expectation(fits=1),)
    return _HEAD + yaml.safe_dump(msgspec.to_builtins(replace(content, expect=expected)), sort_keys=False)


def _true_expectation(cluster: ScheduledCluster, workload: Expectation) -> Expectation:
    """All that is worth holding on to, and true."""
    expectation = workload
    for field, value in _candidates(cluster, workload):
        if all(check.holds for check in checks(cluster, replace(workload, **{field: value}))):
            expectation = replace(expectation, **{field: value})
    return expectation


def _largest_workloads(cluster: ScheduledCluster) -> list[Expectation]:
    """The workloads with most pods, each by the namespace and the labels that its pods share."""
    members: dict[tuple[str, str, str], list[Pod]] = {}
    for pod, _ in cluster.outcome.pods.values():
        owner = pod.metadata.controller
        if owner is not None and owner.kind not in ("DaemonSet", "Job", "Node"):
            members.setdefault((pod.namespace, owner.kind, owner.name), []).append(pod)
    largest = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return [
        Expectation(namespace=namespace, pods=labels)
        for (namespace, _, _), pods in largest[:_WORKLOADS]
        if (labels := _shared_labels(pods))
    ]


def _shared_labels(pods: list[Pod]) -> dict[str, str]:
    common = set(pods[0].metadata.labels.items()).intersection(*(pod.metadata.labels.items() for pod in pods))
    return {key: value for key, value in sorted(common) if not key.endswith(_PASSING) and key not in _COPIED}


def _candidates(cluster: ScheduledCluster, workload: Expectation) -> Iterator[tuple[str, Any]]:
    """Fields of an expectation, and values that may be true."""
    nodes = [cluster.node(pod) for pod, _ in cluster.pods(workload).values() if pod.spec.node_name]
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

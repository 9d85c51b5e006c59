"""A case to objects and a configuration: files and snapshots are read, nodes are built, changes are made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.ask.edit_text import read_added, read_applied, read_applied_objects, read_scale
from kubesched.ask.edits import DrainNodes, Edit, RemoveNodes
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.ask.placement_tests.case import Case, CaseError, NodesOfCase
from kubesched.ask.sources.snapshot import open_snapshot
from kubesched.config import SchedulerConfiguration
from kubesched.simulate.manifests import load

_CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}


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
        edits += [RemoveNodes(content.changes.lose)] if content.changes.lose else []
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
        if snapshot is not None and (found := snapshot.configuration()).text:
            return configuration.load(found.text, source=found.origin, features=features)
    return default


def objects_in(files: Sequence[str]) -> tuple[KubeObject, ...]:
    """What is in manifests, directories, and at most one snapshot. Raises UserError."""
    snapshots = {file: opened for file in files if (opened := open_snapshot(file)) is not None}
    if len(snapshots) > 1:
        raise CaseError(f"cluster.files: expected one snapshot at most, got {', '.join(snapshots)}")
    given = [record for snapshot in snapshots.values() for record in snapshot.read(workloads=True).records()]
    manifests = [file for file in files if file not in snapshots]
    return load(manifests, workloads=True, given=given, given_by="".join(snapshots)).objects


def _cluster(case: Case) -> tuple[KubeObject, ...]:
    objects = objects_in([case.path(file) for file in case.content.cluster.files])
    built = [node for pool in case.content.cluster.nodes for node in nodes_of(pool)]
    taken = {obj.name for obj in objects if isinstance(obj, Node)}
    for node in built:
        name = node["metadata"]["name"]
        if name in taken:
            raise CaseError(f"cluster.nodes: there is a node {name} already")
        taken.add(name)
    edits = [read_applied_objects(built, "cluster.nodes", objects)] if built else []
    return apply_hypothetical(objects, edits)


def nodes_of(pool: NodesOfCase) -> list[Object]:
    """The nodes of a pool: `web-1`, `web-2`; of a single one the name is that of the pool."""
    found = []
    for i in range(pool.count):
        name = pool.name if pool.count == 1 else f"{pool.name}-{i + 1}"
        zone = {ZONE: pool.zones[i % len(pool.zones)]} if pool.zones else {}
        labels = {HOSTNAME: name, "pool": pool.name, **zone, **pool.labels}
        taints = [msgspec.to_builtins(taint) for taint in pool.taints]
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {"capacity": {**_CAPACITY, **pool.capacity}},
            }
        )
    return found

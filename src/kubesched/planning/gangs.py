"""Groups of which all or none are to run, and the domain within which a group must stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.framework.groups import group_of
from kubesched.planning.covers import Cover, fill_cover
from kubesched.planning.kinds import PodKind, Problem, classes_of, free_of, resources_of
from kubesched.planning.levels import Apart
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Bool


def gang_of(cluster: ClusterModel, pod: Pod) -> PodGroup | None:
    """The group of a pod, if its pods have to run together or next to each other."""
    group = group_of(pod, cluster.state) if group_key(pod) else None
    return group if group is not None and (group.is_gang or group.topology_key) else None


def domains_of(cluster: ClusterModel, key: str) -> dict[str, Bool]:
    """The rows with each value of a label."""
    nodes, rows = cluster.state.nodes, dict[str, list[int]]()
    for row in np.flatnonzero(nodes.live[: nodes.size]).tolist():
        value = nodes.node(row).metadata.labels.get(key)
        if value is not None:
            rows.setdefault(value, []).append(row)
    return {value: np.isin(np.arange(nodes.size), rows[value]) for value in sorted(rows)}


def running_of(cluster: ClusterModel, key: str) -> int:
    """How many pods of a group have a node."""
    return sum(1 for pod in cluster.pods.values() if pod.spec.node_name and group_key(pod) == key)


def gang_of_kind(kind: PodKind) -> str:
    """The key of the group that a kind of pending pods belongs to as a whole; empty if they run by themselves."""
    return kind.apart.gang if isinstance(kind.apart, Apart) else ""


def within_domains(cluster: ClusterModel, problem: Problem) -> Problem:
    """The problem with each gang that must stay together limited to the domain that it fits most tightly."""
    kinds, free = list(problem.kinds), free_of(cluster, problem.resources)
    for key in sorted({gang_of_kind(kind) for kind in kinds} - {""}):
        mine = [k for k, kind in enumerate(kinds) if gang_of_kind(kind) == key]
        gang = gang_of(cluster, kinds[mine[0]].pods[0])
        if gang is None or not gang.topology_key:
            continue
        rows = _domain(cluster, [kinds[k] for k in mine], gang)
        for k in mine:
            kinds[k] = replace(kinds[k], fits=kinds[k].fits & rows)
    if all(new is old for new, old in zip(kinds, problem.kinds)):
        return problem
    return Problem(problem.resources, tuple(kinds), classes_of(kinds, free, cluster.state.nodes.live[: len(free)]))


def _domain(cluster: ClusterModel, kinds: Sequence[PodKind], gang: PodGroup) -> Bool:
    """The rows of the domain where its pods run already, or where all of it fits and least is left; else none."""
    nodes, domains = cluster.state.nodes, domains_of(cluster, gang.topology_key).values()
    placed = [pod.spec.node_name for pod in cluster.pods.values() if group_key(pod) == gang.key]
    running = [nodes.row_of[name] for name in placed if name in nodes.row_of]
    best, rows = None, np.zeros(nodes.size, dtype=np.bool_)
    resources = resources_of(kinds)
    room = free_of(cluster, resources)
    for within in [domain for domain in domains if domain[running].any()] or domains:
        limited = [replace(kind, fits=kind.fits & within) for kind in kinds]
        part = Problem(resources, tuple(limited), classes_of(limited, room, within))
        cover = Cover.of_queue(part, np.ones(len(kinds)))
        fits = not fill_cover(cover, (), 1.0 / np.maximum(room.max(axis=0), 1)).unplaced.any()
        spare = float((room[within] / np.maximum(room.max(axis=0), 1)).sum())
        if fits and (best is None or spare < best):
            best, rows = spare, within
    return rows

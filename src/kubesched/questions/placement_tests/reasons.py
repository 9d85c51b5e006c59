"""Why a pod is where it is, or waits, in a few lines: what is against which nodes, and the scores of the best."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.explanation import explain_pod

_GROUPS = 6
_NAMED = 3
_BEST = 3


def why(cluster: ClusterModel, pod: Pod) -> tuple[str, ...]:
    """The decision about the pod as if it had still to be made. The cluster is without the pod afterwards."""
    found = explain_pod(cluster, pod)
    groups: dict[str, list[str]] = {}
    for verdict in found.verdicts:
        if not verdict.fits and verdict.refusal is not None:
            groups.setdefault(f"{verdict.refusal.plugin}: {verdict.refusal.text}", []).append(verdict.node)
    lines = [f"the decision about {found.pod}:"]
    if found.gate is not None:
        lines.append(f"  {found.gate.plugin}: {found.gate.text}")
    if found.pre_filters.refusal is not None:
        lines.append(f"  {found.pre_filters.refusal.plugin}: {found.pre_filters.refusal.text}")
        groups = {}
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines += [f"  {_nodes(names)}: {reason}" for reason, names in ranked[:_GROUPS]]
    if len(ranked) > _GROUPS:
        lines.append(f"  and {len(ranked) - _GROUPS} more reasons")
    for score in found.scores[:_BEST]:
        parts = sorted(score.parts, key=lambda part: -part.weighted)
        made_of = ", ".join(f"{part.plugin} {part.weighted}" for part in parts if part.weighted)
        lines.append(f"  {score.node}: score {score.total}{f' ({made_of})' if made_of else ''}")
    if not found.scores and found.node:
        lines.append(f"  {found.node}: the only node that fits")
    return tuple(lines)


def _nodes(names: list[str]) -> str:
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"{len(names)} node{'' if len(names) == 1 else 's'} ({some})"

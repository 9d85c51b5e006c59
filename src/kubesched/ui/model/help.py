"""What would help pods that wait, as the page shows it: each change in words, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.questions.pending import PendingGroup, PoolHelp, pending_pods
from kubesched.questions.remedies import ObjectChange, Remedies, remedies
from kubesched.simulate.cluster import ClusterModel

MOST_WAITING = 1_000
"""So many pods are placed and explained together, in the order of the queue; of more, the first."""
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Help:
    """A change, or a pair of them, after which a pod finds a node."""

    text: str
    sorts: tuple[str, ...]
    node: str
    changes: tuple[ObjectChange, ...]


@dataclass(frozen=True, slots=True)
class PodHelp:
    """All that was found for one pod, the smallest first."""

    pod: str
    found: tuple[Help, ...]
    tried: int
    exhaustive: bool
    """Whether an empty answer means that nothing helps."""


@dataclass(frozen=True, slots=True)
class GroupHelp:
    """Pods that wait for the same: what would help all of them, and what the first."""

    why: str
    pods: int
    examples: tuple[str, ...]
    pools: tuple[PoolHelp, ...]
    """So many more nodes of a pool would place so many of them."""
    first: PodHelp | None


@dataclass(frozen=True, slots=True)
class PendingHelp:
    """All pods that wait."""

    asked: int
    waiting: int
    placed: int
    """Those that would find a node as things are."""
    groups: tuple[GroupHelp, ...]
    """The largest first."""


def help_for(cluster: ClusterModel, key: str) -> PodHelp:
    """What would help one pod. The cluster is the same afterwards."""
    return _pod_help(remedies(cluster, cluster.pods[key]))


def help_for_all(cluster: ClusterModel) -> PendingHelp:
    """What would help all that wait. The cluster holds the pods that could be placed afterwards."""
    waiting = cluster.pending()
    for pod in waiting[MOST_WAITING:]:
        del cluster.pods[pod.key]
        cluster.state.delete(pod)
    found = pending_pods(cluster)
    groups = tuple(_group_help(group) for group in found.groups)
    return PendingHelp(min(len(waiting), MOST_WAITING), len(waiting), len(found.placed), groups)


def _group_help(group: PendingGroup) -> GroupHelp:
    first = None if group.remedies is None else _pod_help(group.remedies)
    return GroupHelp(group.why, len(group.pods), group.pods[:_EXAMPLES], group.pools, first)


def _pod_help(found: Remedies) -> PodHelp:
    helps = tuple(
        Help(remedy.text, tuple(step.sort.value for step in remedy.steps), remedy.node, remedy.changes)
        for remedy in found.found
    )
    return PodHelp(found.pod, helps, found.tried, found.exhaustive)

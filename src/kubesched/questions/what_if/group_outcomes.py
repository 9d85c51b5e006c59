"""Pod groups before and after: which run whole, and which wait as a whole, because of the changes."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.questions.what_if.answer import GroupOutcome
from kubesched.questions.what_if.outcome import Outcome

_Members = dict[str, tuple[Pod, str]]
"""The pods of a group with the reasons of those that wait, by the names that they had at first."""


def group_outcomes(before: Outcome, after: Outcome) -> tuple[GroupOutcome, ...]:
    """Those that the changes matter to. None if groups are not scheduled as such."""
    return tuple(sorted(_told(before, after), key=lambda each: (each.runs, each.group))) if after.has_groups else ()


def _told(before: Outcome, after: Outcome) -> Iterator[GroupOutcome]:
    first, then = _members(before), _members(after)
    for group in after.settled:
        if not isinstance(group, PodGroup):
            continue
        was, is_now = first.get(group.key, {}), then.get(group.key, {})
        nodes, nodes_now = _nodes(was), _nodes(is_now)
        if nodes == nodes_now and was.keys() == is_now.keys():
            continue
        yield GroupOutcome(
            group.key,
            group.min_count,
            len(is_now),
            len(nodes),
            len(nodes_now),
            sum(key in nodes and nodes[key] != node for key, node in nodes_now.items()),
            len(nodes_now) >= group.min_count,
            _reason(group, is_now),
        )


def _reason(group: PodGroup, members: _Members) -> str:
    """What the condition of a group says that was tried; else what its pods say."""
    waiting = [reason for pod, reason in members.values() if not pod.spec.node_name]
    said = [condition.message for condition in group.status.conditions if condition.status == "False"]
    return next(filter(None, (*said, *waiting)), "") if waiting else ""


def _members(side: Outcome) -> dict[str, _Members]:
    found: dict[str, _Members] = {}
    for key, (pod, reason) in side.pods.items():
        if group := group_key(pod):
            found.setdefault(group, {})[key] = (pod, reason)
    return found


def _nodes(members: _Members) -> dict[str, str]:
    return {key: pod.spec.node_name for key, (pod, _) in members.items() if pod.spec.node_name}

"""The pods of each pod group, pending and placed: a group's quorum counts them."""

from __future__ import annotations

from collections.abc import Collection

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import group_key

_NONE: dict[str, Pod] = {}


class GroupMembers:
    """Pods by the name of their group, not by its uid: a group that is made anew inherits them.

    A pending pod counts if a profile schedules it; a placed one counts whoever placed it.
    """

    def __init__(self) -> None:
        self._pending: dict[str, dict[str, Pod]] = {}
        self._placed: dict[str, dict[str, Pod]] = {}

    def pending(self, key: str) -> Collection[Pod]:
        """The pods of a group that have no node, and are not assumed on one."""
        return self._pending.get(key, _NONE).values()

    def placed(self, key: str) -> Collection[Pod]:
        """The pods of a group that are bound to a node, or assumed there."""
        return self._placed.get(key, _NONE).values()

    def count(self, key: str) -> int:
        """All pods of the group, also those that are gated or being deleted."""
        return len(self.pending(key)) + len(self.placed(key))

    def seen(self, pod: Pod) -> None:
        """A pending pod came, or changed."""
        if (key := group_key(pod)) and pod.identity not in self._placed.get(key, _NONE):
            self._pending.setdefault(key, {})[pod.identity] = pod

    def gone(self, pod: Pod) -> None:
        """A pending pod was deleted, or belongs to another scheduler now."""
        if key := group_key(pod):
            _remove_member(self._pending, key, pod)

    def place(self, pod: Pod) -> None:
        if key := group_key(pod):
            _remove_member(self._pending, key, pod)
            self._placed.setdefault(key, {})[pod.identity] = pod

    def remove(self, pod: Pod) -> None:
        """A placed pod left its node."""
        if key := group_key(pod):
            _remove_member(self._placed, key, pod)


def _remove_member(pods: dict[str, dict[str, Pod]], key: str, pod: Pod) -> None:
    members = pods.get(key)
    if members is not None and members.pop(pod.identity, None) is not None and not members:
        del pods[key]

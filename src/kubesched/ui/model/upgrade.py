"""What an upgrade of Kubernetes changes, for the page: by the change that causes it, and workload by workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.ask.releases.comparison import ChangeKind, ChangesByCause, PodChange, ReleaseComparison
from kubesched.ask.releases.settings import SettingChange
from kubesched.ask.releases.toggles import ReleaseCause
from kubesched.ui.model.owners import WorkloadName, owner_by_key

_ROWS = 300
"""Of longer lists the first are shown; the command has all."""
_NAMED = 20


@dataclass(frozen=True, slots=True)
class UpgradedPods:
    """Pods of one workload of which the releases make the same two things."""

    workload: WorkloadName
    kind: ChangeKind
    is_placed: bool
    pods: tuple[str, ...]
    """The first of them."""
    count: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class UpgradeCause:
    """What a change of Kubernetes, or several together, does."""

    title: str
    causes: tuple[ReleaseCause, ...]
    pods: int
    rows: tuple[UpgradedPods, ...]
    left_out: int
    """How many more rows there are."""


@dataclass(frozen=True, slots=True)
class UpgradeView:
    """The comparison of two releases as the page shows it."""

    before: str
    after: str
    summary: str
    method: str
    refused: tuple[str, ...]
    groups: tuple[UpgradeCause, ...]
    fields: tuple[SettingChange, ...]
    gates: tuple[SettingChange, ...]


def upgrade_view(comparison: ReleaseComparison, pods: Mapping[str, Pod]) -> UpgradeView:
    """The comparison to show. Pods that are unknown, because nobody made them yet, stand for themselves."""
    return UpgradeView(
        before=comparison.before,
        after=comparison.after,
        summary=comparison.summary if comparison.decided or not comparison.refused else "",
        method=comparison.method if comparison.decided else "",
        refused=comparison.refused,
        groups=tuple(_cause(group, pods) for group in comparison.groups),
        fields=comparison.fields,
        gates=comparison.gates,
    )


def _cause(group: ChangesByCause, pods: Mapping[str, Pod]) -> UpgradeCause:
    rows = list(_by_workload(group.changes, pods))
    return UpgradeCause(
        group.title, group.causes, sum(row.count for row in rows), tuple(rows[:_ROWS]), max(len(rows) - _ROWS, 0)
    )


def _by_workload(changes: Iterable[PodChange], pods: Mapping[str, Pod]) -> Iterator[UpgradedPods]:
    """In the order of the changes: pending pods first, and of these those that no longer fit."""
    alike: dict[tuple[WorkloadName, ChangeKind, bool, str, str], list[str]] = {}
    for change in changes:
        for key in change.pods:
            fate = change.kind, change.is_placed, change.before.words, change.after.words
            alike.setdefault((owner_by_key(key, pods.get(key)), *fate), []).append(key)
    for (workload, kind, is_placed, before, after), keys in alike.items():
        yield UpgradedPods(workload, kind, is_placed, tuple(keys[:_NAMED]), len(keys), before, after)

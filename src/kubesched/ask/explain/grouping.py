"""Nodes with the same verdict as one group, named by what tells them from the others: a pool, a zone, a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kubesched.api.node import Node
from kubesched.api.well_known import HOSTNAME, POOL_LABELS, REGION, ZONE
from kubesched.ask.explain.explanation import NodeRejection, NodeVerdict
from kubesched.ask.pools import INSTANCE_TYPE
from kubesched.state.cluster import ClusterState

NAMED_ONE_BY_ONE = 3
"""Groups of at most so many nodes are shown by the names of the nodes."""
MOST_VALUES = 4
_GROUPING_LABELS = (*POOL_LABELS, INSTANCE_TYPE, ZONE, REGION)
_IGNORED_LABELS = (
    HOSTNAME,
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)


@dataclass(frozen=True, slots=True)
class Trait:
    """What all nodes of a group, and no others, have: one of some values of a label, or names that begin alike."""

    label: str
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        values = ", ".join(self.values)
        if not self.label:
            return f"names that begin with {values}"
        short = self.label.rpartition("/")[2]
        word = "pool" if self.label in POOL_LABELS else short
        return f"{word} {values}"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of which the same is said."""

    nodes: tuple[str, ...]
    fits: bool
    refusal: NodeRejection | None = None
    for_nominated: bool = False
    also: tuple[NodeRejection, ...] = ()
    """What all of them have against the pod besides."""
    trait: Trait | None = None


def groups_of(verdicts: Sequence[NodeVerdict], state: ClusterState) -> tuple[NodeGroup, ...]:
    """Those that fit, then the others by number, the largest last: what is said of few is worth a look first."""
    found: dict[tuple[NodeRejection | None, bool], list[NodeVerdict]] = {}
    for verdict in verdicts:
        found.setdefault((verdict.refusal, verdict.for_nominated), []).append(verdict)
    traits = Traits(state, [verdict.node for verdict in verdicts])
    groups = [
        NodeGroup(
            tuple(verdict.node for verdict in alike),
            refusal is None,
            refusal,
            for_nominated,
            _common(alike),
            traits.of([verdict.node for verdict in alike]) if len(found) > 1 else None,
        )
        for (refusal, for_nominated), alike in found.items()
    ]
    return tuple(sorted(groups, key=lambda group: (not group.fits, -len(group.nodes), group.nodes[0])))


def _common(verdicts: Sequence[NodeVerdict]) -> tuple[NodeRejection, ...]:
    first = verdicts[0].also
    distinct = {verdict.also for verdict in verdicts}
    return tuple(rejection for rejection in first if all(rejection in also for also in distinct))


class Traits:
    """Finds what some nodes of a cluster have in common that the others do not have."""

    def __init__(self, state: ClusterState, nodes: Sequence[str]) -> None:
        self._nodes: dict[str, Node] = {name: state.nodes.node(state.nodes.row_of[name]) for name in nodes}
        self._sizes: dict[str, dict[str | None, int]] = {}

    @cached_property
    def _keys(self) -> list[str]:
        """Labels by which people tell nodes apart: those known for it, then those with few values."""
        values: dict[str, set[str]] = {}
        for node in self._nodes.values():
            for key, value in node.metadata.labels.items():
                known = values.setdefault(key, set())
                if len(known) <= 50:
                    known.add(value)
        telling = [key for key in _GROUPING_LABELS if key in values]
        others = sorted(key for key, found in values.items() if len(found) <= 50 and key not in _IGNORED_LABELS)
        return [*telling, *(key for key in others if key not in telling)]

    def of(self, names: Sequence[str]) -> Trait | None:
        """The trait of a group of more than a few nodes; None if they have none of their own."""
        if len(names) <= NAMED_ONE_BY_ONE:
            return None
        for key in self._keys:
            mine = self._counts(key, names)
            if None in mine or len(mine) > MOST_VALUES:
                continue
            if all(self._count(key).get(value) == count for value, count in mine.items()):
                return Trait(key, tuple(sorted(value for value in mine if value is not None)))
        return self._prefix(names)

    def _count(self, key: str) -> Mapping[str | None, int]:
        if key not in self._sizes:
            self._sizes[key] = self._counts(key, list(self._nodes))
        return self._sizes[key]

    def _counts(self, key: str, names: Sequence[str]) -> dict[str | None, int]:
        counts: dict[str | None, int] = {}
        for name in names:
            value = self._nodes[name].metadata.labels.get(key)
            counts[value] = counts.get(value, 0) + 1
        return counts

    def _prefix(self, names: Sequence[str]) -> Trait | None:
        first, last = min(names), max(names)
        same = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), len(first))
        prefix = first[:same]
        if len(prefix) < 3 or sum(name.startswith(prefix) for name in self._nodes) != len(names):
            return None
        return Trait("", (prefix,))

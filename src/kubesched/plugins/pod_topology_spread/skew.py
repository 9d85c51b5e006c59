"""Spread constraints in numbers: how many matching pods each domain has, and what that means for a node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.api.tolerations import KEEPS_AWAY, tolerates_any_way
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import Details, Section
from kubesched.plugins.pod_topology_spread.domains import Domains
from kubesched.state.columns import Bool

_MOST_NAMED = 4
_MOST_ROWS = 30


@dataclass(frozen=True, slots=True)
class SpreadDomain:
    """One domain of a constraint."""

    domain: str
    pods: int
    """The pods that the constraint counts."""
    remark: str
    """What keeps all of its nodes from taking the pod, though its pods count."""


@dataclass(frozen=True, slots=True)
class SpreadCounts:
    """A constraint, and its domains: those with fewest pods first."""

    topology_key: str
    max_skew: int
    min_domains: int
    fewest: int
    domains: tuple[SpreadDomain, ...]


def counts_of(cycle: Cycle, domains: Domains) -> SpreadCounts:
    constraint, table = domains.constraint, cycle.state.nodes
    column = table.label(constraint.topology_key)
    present = np.flatnonzero(domains.counted.present).tolist()
    by_pods = sorted((int(domains.pods[i]), str(column.values.values[i]), i) for i in present)
    spread_domains = tuple(
        SpreadDomain(name, pods, _why_closed(cycle, column.ids[: table.size] == i) if place < _MOST_ROWS else "")
        for place, (pods, name, i) in enumerate(by_pods)
    )
    fewest = domains.fewest() if spread_domains else 0
    return SpreadCounts(constraint.topology_key, constraint.max_skew, constraint.min_domains, fewest, spread_domains)


def _why_closed(cycle: Cycle, rows: Bool) -> str:
    """Whether nodes are cordoned or tainted, all of them."""
    table, numeric = cycle.state.nodes, cycle.state.features.taint_comparisons
    for row in np.flatnonzero(rows & table.live[: table.size]).tolist():
        spec, tolerations = table.node(row).spec, cycle.pod.spec.tolerations
        taints = (taint for taint in spec.taints if taint.effect in KEEPS_AWAY)
        if not spec.unschedulable and all(tolerates_any_way(tolerations, taint, numeric=numeric) for taint in taints):
            return ""
    return "all its nodes are cordoned or tainted, and it counts"


def skew_in_words(cycle: Cycle, topologies: list[Domains], node: NodeView) -> str:
    """Why constraints reject a node, as a phrase with the node as its subject."""
    phrases = []
    for domains in topologies:
        constraint = domains.constraint
        value = node.labels.get(constraint.topology_key)
        if value is None:
            phrases.append(f"lacks the label {constraint.topology_key}")
            continue
        counts = counts_of(cycle, domains)
        pods = next((domain.pods for domain in counts.domains if domain.domain == value), 0)
        if pods + constraint.selector.matches(cycle.pod.metadata.labels) - counts.fewest > constraint.max_skew:
            phrases.append(f"is in {value} with {pods} matching pods, {_text_of_others(counts, value)}")
    return "; ".join(phrases)


def _text_of_others(counts: SpreadCounts, value: str) -> str:
    limit = f"maxSkew {counts.max_skew} over {counts.topology_key}"
    if len(counts.domains) < counts.min_domains:
        return f"of {len(counts.domains)} domains where {counts.min_domains} are wanted: {limit}"
    others = [domain for domain in counts.domains if domain.domain != value]
    shown = others if len(others) <= _MOST_NAMED else others[:1]
    texts = [f"{domain.domain} has {domain.pods}{f' ({domain.remark})' if domain.remark else ''}" for domain in shown]
    return f"{', '.join(texts)}: {limit}"


def details_of(constraints: tuple[SpreadCounts, ...]) -> Details:
    """A table for each constraint."""
    sections = tuple(
        Section(
            title=f"Spread over {counts.topology_key}, maxSkew {counts.max_skew}",
            columns=("Domain", "Matching pods", "Remark"),
            rows=tuple((domain.domain, str(domain.pods), domain.remark) for domain in counts.domains[:_MOST_ROWS]),
            right=("Matching pods",),
        )
        for counts in constraints
    )
    return Details(sections, constraints)

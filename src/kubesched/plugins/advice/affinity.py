"""The advice of NodeAffinity and InterPodAffinity: label a node, drop a condition on nodes or on other pods."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from msgspec.structs import replace

from kubesched.api.affinity import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
)
from kubesched.api.meta import LabelSelector
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodSpec
from kubesched.api.selectors import compile_node_term, node_matches
from kubesched.api.well_known import HOSTNAME, is_owned_label
from kubesched.framework.advice import (
    AdvicePlugin,
    NodeShortfall,
    RemedyKind,
    RemedyProposal,
    SpecEdit,
    propose_for_nearest,
    propose_label,
    propose_spec,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.state.columns import Float

_CAN_BE_SET = ("In", "Exists")
_MOST_VALUES, _FEW_VALUES = 5, 20
"""Where nodes have more than a few values of a label, only values spelled alike are named."""


class NodeAffinityAdvice(AdvicePlugin):
    """Names the labels that nodes lack; proposes to set them, or to drop what asks for them."""

    def distance(self, cycle: Cycle, nodes: Nodes) -> Float:
        """Twice that of other plugins: a node that the pod asks for, and that lacks something else, is nearer."""
        return np.full(len(nodes), 2.0)

    def shortfall(self, cycle: Cycle, node: NodeView) -> NodeShortfall | None:
        missing = list(_missing_labels(cycle.pod, node.node))
        hints = {(key, value): _values_text(values) for key, value, values in _labels_of_no_node(cycle, missing)}
        labels = [f"{key}={value}{hints.get((key, value), '')}" for key, value in missing]
        return NodeShortfall(f"lacks the label {' and '.join(labels)}") if labels else None

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        yield from _other_values(cycle)
        yield from _node_selectors(cycle.pod)
        yield from _node_affinities(cycle.pod)
        yield from propose_for_nearest(nearest, lambda node: _labels_to_set(cycle.pod, node))


def _labels_of_no_node(cycle: Cycle, labels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, list[str]]]:
    """The labels that no node has, with the values that nodes have, the nearest in spelling first."""
    table = cycle.state.nodes
    for key, value in labels:
        values = [v for v in table.label(key).values.values if v is not None] if table.has_label(key) else []
        if value not in values:
            is_few = len(values) <= _FEW_VALUES and key != HOSTNAME
            yield key, value, difflib.get_close_matches(value, values, n=_FEW_VALUES, cutoff=0.0 if is_few else 0.6)


def _values_text(values: list[str]) -> str:
    if not values:
        return ""
    some = f"{', '.join(sorted(values[:_MOST_VALUES]))}{', ...' if values[_MOST_VALUES:] else ''}"
    return f" (as all nodes do; there are {some})"


def _other_values(cycle: Cycle) -> Iterator[RemedyProposal]:
    """Instead of a value that no node has, maybe misspelt: those that there are."""
    for key, value, values in _labels_of_no_node(cycle, cycle.pod.spec.node_selector.items()):
        for place, alternative in enumerate(values[:_MOST_VALUES]):
            yield propose_spec(
                cycle.pod,
                RemedyKind.OTHER_LABEL_VALUE,
                f"Ask for {key}={alternative}: no node has {value}",
                _selecting(key, alternative),
                size=place,
                about=f"node selector {key}",
            )


def _selecting(key: str, value: str) -> SpecEdit:
    return lambda spec: replace(spec, node_selector={**spec.node_selector, key: value})


def _node_selectors(pod: Pod) -> Iterator[RemedyProposal]:
    for key, value in pod.spec.node_selector.items():
        yield propose_spec(
            pod,
            RemedyKind.DROP_NODE_SELECTOR,
            f"Do without the node selector {key}={value}",
            lambda spec, key=key: replace(  # type: ignore[misc]
                spec, node_selector={other: v for other, v in spec.node_selector.items() if other != key}
            ),
        )


def _node_affinities(pod: Pod) -> Iterator[RemedyProposal]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return
    about, terms = "node affinity", required.node_selector_terms
    for i, term in enumerate(terms):
        conditions = (*term.match_expressions, *term.match_fields)
        for condition in conditions if len(conditions) > 1 else ():
            text = f"Do without the node affinity {requirement_text(condition)}"
            yield propose_spec(pod, RemedyKind.DROP_NODE_AFFINITY, text, _without_condition(i, condition), about=about)
    text = "Do without the required node affinity"
    all_conditions = [condition for term in terms for condition in (*term.match_expressions, *term.match_fields)]
    if len(terms) == len(all_conditions) == 1:
        text = f"Do without the node affinity {requirement_text(all_conditions[0])}"
    drop_affinity = partial(_with_node_selector, selector=None)
    yield propose_spec(pod, RemedyKind.DROP_NODE_AFFINITY, text, drop_affinity, size=1.0, about=about)


def requirement_text(requirement: NodeSelectorRequirement) -> str:
    """`zone in (a, b)`, as kubectl writes selectors."""
    match requirement.operator:
        case "Exists":
            return requirement.key
        case "DoesNotExist":
            return f"!{requirement.key}"
        case "In" | "NotIn":
            operator = "in" if requirement.operator == "In" else "notin"
            return f"{requirement.key} {operator} ({', '.join(requirement.values)})"
        case _:
            sign = ">" if requirement.operator == "Gt" else "<"
            return f"{requirement.key} {sign} {', '.join(requirement.values)}"


def _without_condition(i: int, condition: NodeSelectorRequirement) -> SpecEdit:
    def drop_condition(term: NodeSelectorTerm) -> NodeSelectorTerm:
        return replace(
            term,
            match_expressions=tuple(other for other in term.match_expressions if other != condition),
            match_fields=tuple(other for other in term.match_fields if other != condition),
        )

    def edit(spec: PodSpec) -> PodSpec:
        assert spec.affinity is not None
        assert spec.affinity.node_affinity is not None
        selector = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        assert selector is not None
        terms = tuple(drop_condition(t) if n == i else t for n, t in enumerate(selector.node_selector_terms))
        return _with_node_selector(spec, replace(selector, node_selector_terms=terms))

    return edit


def _with_node_selector(spec: PodSpec, selector: NodeSelector | None) -> PodSpec:
    assert spec.affinity is not None
    assert spec.affinity.node_affinity is not None
    affinity = replace(spec.affinity.node_affinity, required_during_scheduling_ignored_during_execution=selector)
    return replace(spec, affinity=replace(spec.affinity, node_affinity=affinity))


def _labels_to_set(pod: Pod, node: Node) -> Iterator[RemedyProposal]:
    """Labels that kubelets or clouds own are left out: a node with another hostname or zone breaks volumes."""
    for key, value in _missing_labels(pod, node):
        if not is_owned_label(key):
            yield propose_label(node, key, value)


def _missing_labels(pod: Pod, node: Node) -> Iterator[tuple[str, str]]:
    """Labels that the pod's node selector and node affinity ask for, and that the node does not have."""
    labels = node.metadata.labels
    missing = dict.fromkeys(item for item in pod.spec.node_selector.items() if labels.get(item[0]) != item[1])
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required else ():
        for condition in term.match_expressions:
            if condition.operator in _CAN_BE_SET and not _meets(condition, node):
                missing[condition.key, condition.values[0] if condition.values else "true"] = None
    yield from missing


def _meets(condition: NodeSelectorRequirement, node: Node) -> bool:
    return node_matches((compile_node_term(NodeSelectorTerm(match_expressions=(condition,))),), node)


# -- other pods -------------------------------------------------------------------------------------------------------


class PodAffinityAdvice(AdvicePlugin):
    """Proposes to drop single terms of the pod's affinity and anti-affinity."""

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        affinity = cycle.pod.spec.affinity or Affinity()
        for field, kind, word, part in (
            ("pod_anti_affinity", RemedyKind.DROP_ANTI_AFFINITY, "anti-affinity to", affinity.pod_anti_affinity),
            ("pod_affinity", RemedyKind.DROP_AFFINITY, "affinity to", affinity.pod_affinity),
        ):
            for term in part.required_during_scheduling_ignored_during_execution if part else ():
                pods = f"pods with {selector_text(term.label_selector)} in the same {term.topology_key}"
                yield propose_spec(cycle.pod, kind, f"Do without the {word} {pods}", _without_term(field, term))


def _without_term(field: str, term: PodAffinityTerm) -> SpecEdit:
    def edit(spec: PodSpec) -> PodSpec:
        part: PodAffinity = getattr(spec.affinity, field)
        terms = list(part.required_during_scheduling_ignored_during_execution)
        terms.remove(term)
        part = replace(part, required_during_scheduling_ignored_during_execution=tuple(terms))
        return replace(spec, affinity=replace(spec.affinity or Affinity(), **{field: part}))

    return edit


def selector_text(selector: LabelSelector | None) -> str:
    """`app=web, tier in (a, b)`."""
    if selector is None:
        return "no labels at all"
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()]
    conditions = [
        requirement_text(
            NodeSelectorRequirement(key=expression.key, operator=expression.operator, values=expression.values)
        )
        for expression in selector.match_expressions
    ]
    return ", ".join([*labels, *conditions]) or "any labels"

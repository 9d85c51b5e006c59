"""Why affinity or anti-affinity rejects a node, with the name of a pod that is in the way."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.affinity import Affinity, PodAffinity
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeView
from kubesched.plugins.advice.affinity import selector_text
from kubesched.plugins.inter_pod_affinity.neighbours import means, namespaces_of
from kubesched.state.facts import Term
from kubesched.state.pods import PlacedPod


def rejection_in_words(cycle: Cycle, node: NodeView) -> str:
    """As a phrase with the node as its subject; empty if no single pod or term says it."""
    phrases = (*_unmet(cycle, node), *_unwanted(cycle, node))
    return "; ".join(phrases) or next(_unwelcome(cycle, node), "")


def _unmet(cycle: Cycle, node: NodeView) -> Iterator[str]:
    affinity = (cycle.pod.spec.affinity or Affinity()).pod_affinity or PodAffinity()
    written = affinity.required_during_scheduling_ignored_during_execution
    for term, asked in zip(cycle.facts.terms_of("required-affinity"), written):
        if term.topology_key not in node.labels:
            yield f"lacks the label {term.topology_key}"
        elif next(_meant_nearby(cycle, term, node), None) is None:
            domain = f"{term.topology_key}={node.labels[term.topology_key]}"
            yield f"has no pod with {selector_text(asked.label_selector)} in {domain}"


def _unwanted(cycle: Cycle, node: NodeView) -> Iterator[str]:
    for term in cycle.facts.terms_of("required-anti-affinity"):
        placed = next(_meant_nearby(cycle, term, node), None)
        if placed is not None:
            yield f"has {_named(placed, term, node)}, which the pod keeps away from"


def _unwelcome(cycle: Cycle, node: NodeView) -> Iterator[str]:
    labels = cycle.state.namespace_labels(cycle.facts.namespace)
    for placed in cycle.state.pods.at:
        for term in placed.facts.terms_of("required-anti-affinity") if placed is not None else ():
            if placed is not None and means(term, cycle.facts, labels) and _is_near(cycle, placed, term, node):
                yield f"has {_named(placed, term, node)}, which keeps such pods away"


def _meant_nearby(cycle: Cycle, term: Term, node: NodeView) -> Iterator[PlacedPod]:
    """Pods in the node's domain that a term of the pod means. Equivalent pods are judged once."""
    namespaces, judged = namespaces_of(term, cycle.state), dict[int, bool]()
    for placed in cycle.state.pods.at:
        if placed is None:
            continue
        facts = placed.facts
        if id(facts) not in judged:
            in_namespace = namespaces is None or facts.namespace in namespaces
            judged[id(facts)] = in_namespace and term.selector.matches(facts.labels)
        if judged[id(facts)] and _is_near(cycle, placed, term, node):
            yield placed


def _is_near(cycle: Cycle, placed: PlacedPod, term: Term, node: NodeView) -> bool:
    value, other = node.labels.get(term.topology_key), cycle.state.nodes.nodes[placed.row]
    return value is not None and other is not None and other.metadata.labels.get(term.topology_key) == value


def _named(placed: PlacedPod, term: Term, node: NodeView) -> str:
    there = placed.pod.spec.node_name
    return placed.pod.key if there == node.name else f"{placed.pod.key} in the same {term.topology_key} (on {there})"

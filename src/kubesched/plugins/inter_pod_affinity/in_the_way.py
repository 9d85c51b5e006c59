"""Why affinity or anti-affinity rejects a node, with the name of a pod that keeps the pod away."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.api.affinity import Affinity, PodAffinity
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeView
from kubesched.plugins.advice.affinity import selector_text
from kubesched.plugins.inter_pod_affinity.neighbours import namespaces_of, term_matches
from kubesched.state.facts import Term
from kubesched.state.pods import PlacedPod


def rejection_in_words(cycle: Cycle, node: NodeView) -> str:
    """As a phrase with the node as its subject; empty if no single pod or term says it."""
    phrases = (*_unmet_affinity(cycle, node), *_broken_anti_affinity(cycle, node))
    return "; ".join(phrases) or next(_broken_existing_anti_affinity(cycle, node), "")


def _unmet_affinity(cycle: Cycle, node: NodeView) -> Iterator[str]:
    affinity = (cycle.pod.spec.affinity or Affinity()).pod_affinity or PodAffinity()
    spec_terms = affinity.required_during_scheduling_ignored_during_execution
    for term, spec_term in zip(cycle.facts.terms_of("required-affinity"), spec_terms):
        if term.topology_key not in node.labels:
            yield f"lacks the label {term.topology_key}"
        elif next(_matching_nearby(cycle, term, node), None) is None:
            domain = f"{term.topology_key}={node.labels[term.topology_key]}"
            yield f"has no pod with {selector_text(spec_term.label_selector)} in {domain}"


def _broken_anti_affinity(cycle: Cycle, node: NodeView) -> Iterator[str]:
    for term in cycle.facts.terms_of("required-anti-affinity"):
        placed = next(_matching_nearby(cycle, term, node), None)
        if placed is not None:
            yield f"has {_pod_text(placed, term, node)}, which the pod keeps away from"


def _broken_existing_anti_affinity(cycle: Cycle, node: NodeView) -> Iterator[str]:
    labels = cycle.state.namespace_labels(cycle.facts.namespace)
    for placed in cycle.state.pods.at:
        for term in placed.facts.terms_of("required-anti-affinity") if placed is not None else ():
            if placed is not None and term_matches(term, cycle.facts, labels) and _is_near(cycle, placed, term, node):
                yield f"has {_pod_text(placed, term, node)}, which keeps such pods away"


def _matching_nearby(cycle: Cycle, term: Term, node: NodeView) -> Iterator[PlacedPod]:
    """Pods in the node's domain that a term of the pod matches. Equivalent pods are judged once."""
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
    domain, other_node = node.labels.get(term.topology_key), cycle.state.nodes.nodes[placed.row]
    return domain is not None and other_node is not None and other_node.metadata.labels.get(term.topology_key) == domain


def _pod_text(placed: PlacedPod, term: Term, node: NodeView) -> str:
    name = placed.pod.spec.node_name
    return placed.pod.key if name == node.name else f"{placed.pod.key} in the same {term.topology_key} (on {name})"

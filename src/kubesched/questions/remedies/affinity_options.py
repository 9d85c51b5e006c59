"""Changes of the pod's affinity that may help: do without a label of nodes, or without the company of other pods."""

from __future__ import annotations

from collections.abc import Iterator

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
from kubesched.api.pod import Pod, PodSpec
from kubesched.questions.remedies.remedy import Option, Sort, SpecEdit, pod_option


def affinity_options(pod: Pod) -> Iterator[Option]:
    """Each condition on nodes and on other pods can be done without."""
    yield from _node_selectors(pod)
    yield from _node_affinities(pod)
    yield from _pod_affinities(pod)


def _node_selectors(pod: Pod) -> Iterator[Option]:
    for key, value in pod.spec.node_selector.items():
        yield pod_option(
            pod,
            Sort.DROP_NODE_SELECTOR,
            f"Do without the node selector {key}={value}",
            lambda spec, key=key: replace(  # type: ignore[misc]
                spec, node_selector={other: v for other, v in spec.node_selector.items() if other != key}
            ),
        )


def _node_affinities(pod: Pod) -> Iterator[Option]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return
    about, terms = "node affinity", required.node_selector_terms
    for i, term in enumerate(terms):
        conditions = (*term.match_expressions, *term.match_fields)
        for condition in conditions if len(conditions) > 1 else ():
            text = f"Do without the node affinity {requirement_text(condition)}"
            yield pod_option(pod, Sort.DROP_NODE_AFFINITY, text, _without_condition(i, condition), about=about)
    only = len(terms) == 1 and len(terms[0].match_expressions) + len(terms[0].match_fields) == 1
    if only:
        (condition,) = (*terms[0].match_expressions, *terms[0].match_fields)
        text = f"Do without the node affinity {requirement_text(condition)}"
    else:
        text = "Do without the required node affinity"
    yield pod_option(pod, Sort.DROP_NODE_AFFINITY, text, _without_node_affinity, size=1.0, about=about)


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
    def without(term: NodeSelectorTerm) -> NodeSelectorTerm:
        return replace(
            term,
            match_expressions=tuple(each for each in term.match_expressions if each != condition),
            match_fields=tuple(each for each in term.match_fields if each != condition),
        )

    def edit(spec: PodSpec) -> PodSpec:
        assert spec.affinity is not None
        assert spec.affinity.node_affinity is not None
        selector = spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        assert selector is not None
        terms = tuple(without(t) if n == i else t for n, t in enumerate(selector.node_selector_terms))
        return _with_node_selector(spec, replace(selector, node_selector_terms=terms))

    return edit


def _without_node_affinity(spec: PodSpec) -> PodSpec:
    return _with_node_selector(spec, None)


def _with_node_selector(spec: PodSpec, selector: NodeSelector | None) -> PodSpec:
    assert spec.affinity is not None
    assert spec.affinity.node_affinity is not None
    affinity = replace(spec.affinity.node_affinity, required_during_scheduling_ignored_during_execution=selector)
    return replace(spec, affinity=replace(spec.affinity, node_affinity=affinity))


def _pod_affinities(pod: Pod) -> Iterator[Option]:
    """Each required term of affinity and anti-affinity can be done without."""
    affinity = pod.spec.affinity or Affinity()
    for field, sort, word, part in (
        ("pod_anti_affinity", Sort.DROP_ANTI_AFFINITY, "anti-affinity to", affinity.pod_anti_affinity),
        ("pod_affinity", Sort.DROP_AFFINITY, "affinity to", affinity.pod_affinity),
    ):
        for term in part.required_during_scheduling_ignored_during_execution if part else ():
            text = (
                f"Do without the {word} pods with {selector_text(term.label_selector)} in the same {term.topology_key}"
            )
            yield pod_option(pod, sort, text, _without_term(field, term))


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
        requirement_text(NodeSelectorRequirement(key=each.key, operator=each.operator, values=each.values))
        for each in selector.match_expressions
    ]
    return ", ".join([*labels, *conditions]) or "any labels"

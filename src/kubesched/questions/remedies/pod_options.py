"""Changes of the pod that may help: tolerate a taint, request less, do without a constraint, or relax it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

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
from kubesched.api.node import Taint
from kubesched.api.pod import Pod, PodSpec, Toleration
from kubesched.api.requests import is_countable, pod_requests
from kubesched.api.tolerations import KEEPS_AWAY, tolerates_any_way
from kubesched.questions.remedies.remedy import Edit, Option, Sort
from kubesched.questions.remedies.requests import requested, spelled, unit_of, with_request
from kubesched.state.cluster import ClusterState

SYSTEM_TAINTS = "node.kubernetes.io/"
"""What begins so says how a node is; it goes by itself, and pods had better not tolerate it."""

MOST_TAINTS = 24
_NO_LIMIT = 2**31 - 1

SpecEdit = Callable[[PodSpec], PodSpec]


def pod_options(pod: Pod, state: ClusterState) -> Iterator[Option]:
    """All single changes of the pod that may help."""
    yield from _requests(pod, state)
    yield from _tolerations(pod, state)
    yield from _spreads(pod, state)
    yield from _node_selectors(pod)
    yield from _node_affinities(pod)
    yield from _pod_affinities(pod)
    yield from _host_ports(pod)


def without_gates(pod: Pod) -> Option:
    """The pod with all its scheduling gates removed."""
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    gates = "scheduling gate" if len(pod.spec.scheduling_gates) == 1 else "scheduling gates"
    return _option(
        pod, Sort.REMOVE_GATES, f"Remove the {gates} {names}", lambda spec: replace(spec, scheduling_gates=())
    )


def _option(pod: Pod, sort: Sort, text: str, edit: SpecEdit, *, size: float = 0.0, about: str = "") -> Option:
    return Option(sort, text, (_edited(pod, edit),), size=size, about=about or text)


def _edited(pod: Pod, edit: SpecEdit) -> Edit:
    def make(current: Pod) -> Pod:
        return replace(current, spec=edit(current.spec))

    return Edit(pod, make)


# -- requests ---------------------------------------------------------------------------------------------------------


def _requests(pod: Pod, state: ClusterState) -> Iterator[Option]:
    pod_level = state.features.pod_level_resources
    for resource in pod_requests(pod, pod_level=pod_level):
        asked = requested(pod, resource, pod_level=pod_level)
        if asked > 0 and is_countable(resource) and with_request(pod, resource, 0, pod_level=pod_level) is not None:
            yield _RequestLess(pod, resource, asked, state).option(0)


class _RequestLess:
    """Requests of a resource, from nothing up to what the pod requests."""

    def __init__(self, pod: Pod, resource: str, asked: int, state: ClusterState) -> None:
        self._pod = pod
        self._resource = resource
        self._asked = asked
        self._state = state
        self._pod_level = state.features.pod_level_resources

    def option(self, amount: int) -> Option:
        resource, asked, edit = self._resource, self._asked, Edit(self._pod, self._request(amount))
        about, tune = f"requests {resource}", self._tuned
        if amount == 0:
            return Option(Sort.REQUEST_NONE, f"Request no {resource}", (edit,), 1.0, about, tune=tune)
        less, most = spelled(resource, asked - amount), spelled(resource, amount)
        text = f"Request {less} less {resource}: {most} instead of {spelled(resource, asked)}"
        return Option(Sort.REQUEST_LESS, text, (edit,), (asked - amount) / asked, about, tune=tune)

    def _request(self, amount: int) -> Callable[[Pod], Pod]:
        def make(current: Pod) -> Pod:
            made = with_request(current, self._resource, amount, pod_level=self._pod_level)
            assert made is not None
            return made

        return make

    def _tuned(self, fits: Callable[[Option], bool]) -> Option:
        """The most that can be requested: what some node has left, unless nominated pods have a say as well."""
        table = self._state.nodes
        column = table.resources.get(self._resource)
        if column is None:
            return self.option(0)
        left = (table.allocatable[column] - table.requested[column])[: table.size][table.live[: table.size]]
        free = np.unique(left[(left > 0) & (left < self._asked)])
        # With nominated pods, and on nodes that are yet to come, other amounts may be the limit.
        levels = _Levels(lambda amount: fits(self.option(amount)))
        found = levels.greatest_of(free.tolist())
        nothing_between = found and not fits(self.option(found + 1))
        most = found if nothing_between else levels.greatest(found, self._asked - 1)
        unit = unit_of(self._resource, most)
        return self.option(most - most % unit)


class _Levels:
    """A change of which less helps less: the least that does, or the most that is harmless, is found by halving."""

    def __init__(self, fits: Callable[[int], bool]) -> None:
        self._fits = fits

    def greatest_of(self, levels: list[int]) -> int:
        """The greatest of these that fits; 0 if none does."""
        low, high = 0, len(levels)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._fits(levels[middle]) else (low, middle)
        return levels[low - 1] if low else 0

    def greatest(self, low: int, high: int) -> int:
        """The greatest from low, which fits, to high."""
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(middle) else (low, middle - 1)
        return low


# -- taints -----------------------------------------------------------------------------------------------------------


def untolerated(pod: Pod, taints: tuple[Taint, ...], state: ClusterState) -> list[Taint]:
    """The taints that keep the pod away."""
    numeric, tolerations = state.features.taint_comparisons, pod.spec.tolerations
    return [t for t in taints if t.effect in KEEPS_AWAY and not tolerates_any_way(tolerations, t, numeric=numeric)]


def taint_text(taint: Taint) -> str:
    """`key=value:effect`, as kubectl writes it."""
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def _tolerations(pod: Pod, state: ClusterState) -> Iterator[Option]:
    """A toleration per taint that keeps the pod away, those first that are all that keeps it away from most nodes."""
    table = state.nodes
    counts = Counter(table.taint_ids[: table.size][table.live[: table.size]].tolist())
    nodes: Counter[Taint] = Counter()
    for list_id, count in counts.items():
        taints = untolerated(pod, table.taint_lists.values[list_id] or (), state)
        for taint in taints:
            nodes[taint] += count * (1000 if len(taints) == 1 else 1)
    shown = [taint for taint, _ in nodes.most_common() if not taint.key.startswith(SYSTEM_TAINTS)]
    for place, taint in enumerate(shown[:MOST_TAINTS]):
        toleration = Toleration(
            key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect
        )
        yield _option(
            pod,
            Sort.TOLERATE,
            f"Tolerate the taint {taint_text(taint)}",
            lambda spec, toleration=toleration: replace(spec, tolerations=(*spec.tolerations, toleration)),  # type: ignore[misc]
            size=place,
        )


# -- spread -----------------------------------------------------------------------------------------------------------


def _spreads(pod: Pod, state: ClusterState) -> Iterator[Option]:
    for i, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        yield _Skew(pod, i, state).option(_NO_LIMIT)
        text = f"Let pods spread unevenly over {constraint.topology_key}: whenUnsatisfiable ScheduleAnyway"
        yield _option(pod, Sort.DROP_SPREAD, text, _soft(i), size=i, about=f"spread {i}")


def _soft(i: int) -> SpecEdit:
    return lambda spec: _with_constraint(spec, i, when_unsatisfiable="ScheduleAnyway")


def _with_constraint(spec: PodSpec, i: int, **fields: Any) -> PodSpec:
    constraints = list(spec.topology_spread_constraints)
    constraints[i] = replace(constraints[i], **fields)
    return replace(spec, topology_spread_constraints=tuple(constraints))


class _Skew:
    """Greater values of maxSkew of one constraint."""

    def __init__(self, pod: Pod, i: int, state: ClusterState) -> None:
        self._pod = pod
        self._i = i
        self._constraint = pod.spec.topology_spread_constraints[i]
        self._most = state.pods.size + self._constraint.max_skew + 1

    def option(self, skew: int) -> Option:
        constraint = self._constraint
        text = f"Raise maxSkew over {constraint.topology_key} from {constraint.max_skew} to {skew}"
        return Option(
            Sort.RELAX_SPREAD,
            text,
            (_edited(self._pod, lambda spec: _with_constraint(spec, self._i, max_skew=skew)),),
            skew - constraint.max_skew,
            f"spread {self._i}",
            tune=self._tuned,
        )

    def _tuned(self, fits: Callable[[Option], bool]) -> Option:
        low = self._constraint.max_skew + 1
        wider = _Levels(lambda less: fits(self.option(self._most - less)))
        return self.option(self._most - wider.greatest(0, self._most - low))


# -- affinity ---------------------------------------------------------------------------------------------------------


def _node_selectors(pod: Pod) -> Iterator[Option]:
    for key, value in pod.spec.node_selector.items():
        yield _option(
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
            yield _option(pod, Sort.DROP_NODE_AFFINITY, text, _without_condition(i, condition), about=about)
    only = len(terms) == 1 and len(terms[0].match_expressions) + len(terms[0].match_fields) == 1
    if only:
        (condition,) = (*terms[0].match_expressions, *terms[0].match_fields)
        text = f"Do without the node affinity {requirement_text(condition)}"
    else:
        text = "Do without the required node affinity"
    yield _option(pod, Sort.DROP_NODE_AFFINITY, text, _without_node_affinity, size=1.0, about=about)


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
            yield _option(pod, sort, text, _without_term(field, term))


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


def _host_ports(pod: Pod) -> Iterator[Option]:
    for i, container in enumerate((*pod.spec.containers, *pod.spec.init_containers)):
        for n, port in enumerate(container.ports):
            if port.host_port:
                text = f"Do without the host port {port.host_port}/{port.protocol or 'TCP'} of {container.name}"
                yield _option(pod, Sort.DROP_HOST_PORT, text, _without_port(i, n), about=f"port {i} {n}")


def _without_port(i: int, n: int) -> SpecEdit:
    def edit(spec: PodSpec) -> PodSpec:
        both = [*spec.containers, *spec.init_containers]
        ports = list(both[i].ports)
        ports[n] = replace(ports[n], host_port=0)
        both[i] = replace(both[i], ports=tuple(ports))
        count = len(spec.containers)
        return replace(spec, containers=tuple(both[:count]), init_containers=tuple(both[count:]))

    return edit

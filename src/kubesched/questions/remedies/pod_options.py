"""Changes of the pod that may help: tolerate a taint, request less, do without a constraint, or relax it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubesched.api.node import Taint
from kubesched.api.pod import Pod, PodSpec, Toleration
from kubesched.api.requests import is_countable, pod_requests
from kubesched.api.tolerations import KEEPS_AWAY, tolerates_any_way
from kubesched.questions.remedies.affinity_options import affinity_options
from kubesched.questions.remedies.levels import Levels
from kubesched.questions.remedies.remedy import Edit, Option, Sort, SpecEdit, edited, pod_option
from kubesched.questions.remedies.requests import requested, spelled, unit_of, with_request
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool

SYSTEM_TAINTS = "node.kubernetes.io/"
"""What begins so says how a node is; it goes by itself, and pods had better not tolerate it."""

MOST_TAINTS = 30
_NO_LIMIT = 2**31 - 1


def pod_options(pod: Pod, state: ClusterState, only_room: Bool) -> Iterator[Option]:
    """All single changes of the pod that may help; `only_room` has the rows where nothing but room is missing."""
    yield from _requests(pod, state)
    yield from _requests_of_several(pod, state, only_room)
    yield from _tolerations(pod, state)
    yield from _spreads(pod, state)
    yield from affinity_options(pod)
    yield from _host_ports(pod)


def without_gates(pod: Pod) -> Option:
    """The pod with all its scheduling gates removed."""
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    gates = "scheduling gate" if len(pod.spec.scheduling_gates) == 1 else "scheduling gates"
    return pod_option(
        pod, Sort.REMOVE_GATES, f"Remove the {gates} {names}", lambda spec: replace(spec, scheduling_gates=())
    )


# -- requests ---------------------------------------------------------------------------------------------------------


def _requests(pod: Pod, state: ClusterState) -> Iterator[Option]:
    pod_level = state.features.pod_level_resources
    for resource in pod_requests(pod, pod_level=pod_level):
        asked = requested(pod, resource, pod_level=pod_level)
        if asked > 0 and is_countable(resource) and with_request(pod, resource, 0, pod_level=pod_level) is not None:
            yield _RequestLess(pod, resource, asked, state).option(0)


def _requests_of_several(pod: Pod, state: ClusterState, only_room: Bool) -> Iterator[Option]:
    """Where more than one resource is missing: what the node has left to which the pod is closest."""
    table, pod_level = state.nodes, state.features.pod_level_resources
    asked = {name: requested(pod, name, pod_level=pod_level) for name in pod_requests(pod, pod_level=pod_level)}
    wanted = {name: amount for name, amount in asked.items() if amount > 0 and name in table.resources}
    rows = np.flatnonzero(only_room)
    if not len(rows) or len(wanted) < 2:
        return
    ids = [table.resources[name] for name in wanted]
    left = np.maximum(table.allocatable[ids][:, rows] - table.requested[ids][:, rows], 0)
    amounts = np.array(list(wanted.values()))[:, np.newaxis]
    nearest = int(np.argmin((np.maximum(amounts - left, 0) / amounts).sum(axis=0)))
    less = {n: amount for n, amount in zip(wanted, left[:, nearest].tolist()) if amount < wanted[n]}
    if len(less) < 2:
        return
    less = {name: amount - amount % unit_of(name, amount) for name, amount in less.items()}
    if any(with_request(pod, name, amount, pod_level=pod_level) is None for name, amount in less.items()):
        return
    edits = tuple(Edit(pod, _RequestLess(pod, n, wanted[n], state).request(amount)) for n, amount in less.items())
    parts = [f"{spelled(n, amount)} {n} instead of {spelled(n, wanted[n])}" for n, amount in less.items()]
    text = f"Request what {table.names[int(rows[nearest])]} has left: {', '.join(parts)}"
    is_none = all(amount == 0 for amount in less.values())
    yield Option(Sort.REQUEST_NONE if is_none else Sort.REQUEST_LESS, text, edits, float(len(less)), "requests")


class _RequestLess:
    """Requests of a resource, from nothing up to what the pod requests."""

    def __init__(self, pod: Pod, resource: str, asked: int, state: ClusterState) -> None:
        self._pod = pod
        self._resource = resource
        self._asked = asked
        self._state = state
        self._pod_level = state.features.pod_level_resources

    def option(self, amount: int) -> Option:
        resource, asked, edit = self._resource, self._asked, Edit(self._pod, self.request(amount))
        about, tune = f"requests {resource}", self._tuned
        if amount == 0:
            return Option(Sort.REQUEST_NONE, f"Request no {resource}", (edit,), 1.0, about, tune=tune)
        less, most = spelled(resource, asked - amount), spelled(resource, amount)
        text = f"Request {less} less {resource}: {most} instead of {spelled(resource, asked)}"
        return Option(Sort.REQUEST_LESS, text, (edit,), (asked - amount) / asked, about, tune=tune)

    def request(self, amount: int) -> Callable[[Pod], Pod]:
        """The pod, requesting no more than that."""

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
        levels = Levels(lambda amount: fits(self.option(amount)))
        found = levels.greatest_of(free.tolist())
        nothing_between = found and not fits(self.option(found + 1))
        most = found if nothing_between else levels.greatest(found, self._asked - 1)
        unit = unit_of(self._resource, most)
        return self.option(most - most % unit)


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
        yield pod_option(
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
        yield pod_option(pod, Sort.DROP_SPREAD, text, _soft(i), size=i, about=f"spread {i}")


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
            (edited(self._pod, lambda spec: _with_constraint(spec, self._i, max_skew=skew)),),
            skew - constraint.max_skew,
            f"spread {self._i}",
            tune=self._tuned,
        )

    def _tuned(self, fits: Callable[[Option], bool]) -> Option:
        low = self._constraint.max_skew + 1
        wider = Levels(lambda less: fits(self.option(self._most - less)))
        return self.option(self._most - wider.greatest(0, self._most - low))


# -- ports ------------------------------------------------------------------------------------------------------------


def _host_ports(pod: Pod) -> Iterator[Option]:
    for i, container in enumerate((*pod.spec.containers, *pod.spec.init_containers)):
        for n, port in enumerate(container.ports):
            if port.host_port:
                text = f"Do without the host port {port.host_port}/{port.protocol or 'TCP'} of {container.name}"
                yield pod_option(pod, Sort.DROP_HOST_PORT, text, _without_port(i, n), about=f"port {i} {n}")


def _without_port(i: int, n: int) -> SpecEdit:
    def edit(spec: PodSpec) -> PodSpec:
        both = [*spec.containers, *spec.init_containers]
        ports = list(both[i].ports)
        ports[n] = replace(ports[n], host_port=0)
        both[i] = replace(both[i], ports=tuple(ports))
        count = len(spec.containers)
        return replace(spec, containers=tuple(both[:count]), init_containers=tuple(both[count:]))

    return edit

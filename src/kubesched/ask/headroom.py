"""Headroom: how many more pods of a workload fit, the number that `kubesched capacity` counts, on all nodes or on one.

Where filters can tell without placing a pod (`CopyRoom`), no copy is placed: that is what a page of 5,000 nodes needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubesched.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from kubesched.api.change import Change
from kubesched.api.pod import Pod, PodSpec
from kubesched.ask.trial import Trial
from kubesched.framework.copies import CopyRoom
from kubesched.framework.decision import Decision
from kubesched.plugins.shared.volume_claims import claims_used
from kubesched.simulate.cluster import ClusterModel, waits
from kubesched.simulate.nodes import MIRROR, is_daemon
from kubesched.simulate.placement import (
    PodPlacement,
    UnplacedPod,
    capacity,
    decide_on,
    model_of,
    own_claims,
    with_claims_anew,
)

MOST_COPIES = 100_000
_RUN_OF_CRON_JOB = re.compile(r"-\d{8,}$")
"""A CronJob names its Jobs after the minute of their start."""


class Headroom(NamedTuple):
    """How many more pods like one fit."""

    more: int
    is_exact: bool
    """Whether no more than that fit; else there was no time to look further."""
    nodes: int
    """Nodes that would take the next one."""


def has_headroom(pod: Pod) -> bool:
    """Whether headroom says anything about the pod: not for DaemonSet pods, static pods and runs of CronJobs."""
    owner = pod.metadata.controller
    if is_daemon(pod) or MIRROR in pod.metadata.annotations:
        return False
    return owner is None or owner.kind != "Job" or _RUN_OF_CRON_JOB.search(owner.name) is None


def headroom(
    cluster: ClusterModel, pod: Pod, *, out_of_time: Callable[[], bool] = lambda: False, places: bool = True
) -> Headroom:
    """How many more pods like this one fit. The cluster is the same afterwards.

    Copies are placed until `out_of_time` where no closed form tells; without `places` none is.
    """
    model = one_more(pod)
    room = _copy_room(cluster, model)
    counts = room.counts() if room is not None else None
    with Trial(cluster) as trial:
        nodes = _count_fitting(_decide_next(trial, model, places=places))
        least, most = counts or (0, 0)
        if not nodes or (counts is not None and least == most):
            return Headroom(least, True, nodes)
        more, is_exact = _place_copies(trial, model, out_of_time) if places else (1, False)
    return Headroom(more if is_exact else max(more, least), is_exact, nodes)


def headroom_on(
    cluster: ClusterModel, pod: Pod, node: str, *, out_of_time: Callable[[], bool] = lambda: False, places: bool = True
) -> Headroom:
    """How many more fit on one node, if all of them come there."""
    model = one_more(pod)
    room = _copy_room(cluster, model)
    row = cluster.state.nodes.row_of[node]
    if room is not None:
        more = room.on_row(row)
        return Headroom(more, True, int(more > 0))
    with Trial(cluster) as trial:
        outcome = _decide_next(trial, model, places=places).trace.filter_outcome
        if outcome is None or not outcome.feasible[row]:
            return Headroom(0, True, 0)
        if not places or _is_spread(model):
            return Headroom(1, False, 1)  # a pod that may go to one node alone would be spread over that one alone
        more, is_exact = _place_copies(trial, replace(model, spec=_only_on(model.spec, node)), out_of_time)
    return Headroom(more, is_exact, 1)


def one_more(pod: Pod) -> Pod:
    """A pod like this one that has no node yet. One that has none is asked about itself."""
    if waits(pod):
        return pod
    model, name = model_of(pod), f"{pod.name}-one-more"
    assert model is not None
    metadata = replace(model.metadata, name=name, uid=f"{pod.namespace}/{name}", deletion_timestamp="")
    return replace(model, metadata=metadata)


def _copy_room(cluster: ClusterModel, model: Pod) -> CopyRoom | None:
    """Copies that share a volume or a claim are for the engine to judge, and so is a pod that is held back."""
    engine = cluster.engine
    if not engine.knows(model.spec.scheduler_name) or model.spec.resource_claims or any(claims_used(model)):
        return None
    if engine.pre_enqueue(model) is not None:
        return None
    return engine.copy_room(model)


def _decide_next(trial: Trial, model: Pod, *, places: bool) -> Decision:
    """The decision for the next one, with claims of its own where these may be made."""
    if not places:
        return decide_on(trial.cluster, model)
    copy, claims = with_claims_anew(model, own_claims(model, trial.cluster.state))
    for claim in claims:
        trial.change(Change(None, claim))
    return decide_on(trial.cluster, trial.with_claims(copy))


def _count_fitting(decision: Decision) -> int:
    outcome, table = decision.trace.filter_outcome, decision.cycle.state.nodes
    return 0 if outcome is None else int(np.count_nonzero(outcome.feasible & table.live[: len(outcome.feasible)]))


def _place_copies(trial: Trial, model: Pod, out_of_time: Callable[[], bool]) -> tuple[int, bool]:
    count, is_late = 0, False

    def place(pod: Pod) -> PodPlacement | UnplacedPod:
        nonlocal count, is_late
        is_late, count = count > 0 and out_of_time(), count + 1
        return UnplacedPod(pod.key, 0, "skipped", "out of time") if is_late else trial.place(pod)

    answer = capacity(trial.cluster, model, most=MOST_COPIES, place=place, create=trial.change)
    return answer.fit, not is_late and bool(answer.stopped_by)


def _is_spread(pod: Pod) -> bool:
    return any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in pod.spec.topology_spread_constraints)


def _only_on(spec: PodSpec, node: str) -> PodSpec:
    """The spec of a pod that may go to this node alone, as a DaemonSet writes it."""
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    affinity = spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinity()
    required = node_affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required is not None else (NodeSelectorTerm(),)
    narrowed = NodeSelector(tuple(replace(term, match_fields=(*term.match_fields, name)) for term in terms))
    node_affinity = replace(node_affinity, required_during_scheduling_ignored_during_execution=narrowed)
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))

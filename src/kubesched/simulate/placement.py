"""One pass over the pending pods: each is decided in the order of the queue and stands on its node for those after it.

No pod is evicted and none is tried twice: what preemption would do is reported, not done. Permit and binding are left
out, as there is no API server to write to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.status import Status
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.devices import settle_claims
from kubesched.simulate.preemption import ProposedEviction, chosen_eviction


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """A pod that found a node."""

    pod: str
    priority: int
    node: str
    score: int
    feasible: int
    """How many nodes would have done."""
    ties: int
    """How many of them were equally good; one was drawn."""


@dataclass(frozen=True, slots=True)
class UnplacedPod:
    """A pod that stays pending, in the words of its condition; `eviction` is what preemption would do for it."""

    pod: str
    priority: int
    outcome: str
    message: str
    eviction: ProposedEviction | None = None


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """What became of the pending pods, in the order in which they were tried."""

    nodes: int
    seed: int
    placed: tuple[PodPlacement, ...]
    unplaced: tuple[UnplacedPod, ...]


def place(cluster: ClusterModel) -> PlacementReport:
    """Place all pending pods. The cluster's state holds them afterwards."""
    placed: list[PodPlacement] = []
    unplaced: list[UnplacedPod] = []
    for pod in cluster.pending():
        outcome = place_one(cluster, pod)
        if isinstance(outcome, PodPlacement):
            placed.append(outcome)
        else:
            unplaced.append(outcome)
    return PlacementReport(cluster.state.nodes.live_count, cluster.seed, tuple(placed), tuple(unplaced))


def place_one(
    cluster: ClusterModel, pod: Pod, using: Callable[[Pod], Decision] | None = None
) -> PodPlacement | UnplacedPod:
    """Decide on one pod; if it finds a node, it stands there from now on. `using` takes the place of `schedule`."""
    engine = cluster.engine
    if not engine.knows(pod.spec.scheduler_name):
        text = f"waits for another scheduler: there is no profile {pod.spec.scheduler_name!r}"
        return UnplacedPod(pod.key, pod.priority, "skipped", text)
    if pod.is_terminating:
        return UnplacedPod(pod.key, pod.priority, "skipped", "is being deleted")
    decision = schedule(cluster, pod) if using is None else using(pod)
    if decision.outcome is not Outcome.SCHEDULED:
        eviction = chosen_eviction(decision, cluster.state)
        return UnplacedPod(pod.key, pod.priority, decision.outcome.value, decision.message, eviction)
    return PodPlacement(pod.key, pod.priority, decision.node, decision.score, decision.feasible, decision.draw.among)


def schedule(cluster: ClusterModel, pod: Pod) -> Decision:
    """Run PreEnqueue, the scheduling cycle and Reserve. A pod that finds a node stands there from now on."""
    decision = decided(cluster, pod)
    if decision.outcome is Outcome.SCHEDULED:
        with ExitStack() as undo:
            if reserve(cluster, decision, undo):
                undo.pop_all()
                placed = cluster.state.placed(pod)
                assert placed is not None
                cluster.state.apply(placed.pod)
                settle_claims(decision, cluster.state)
    return decision


def decided(cluster: ClusterModel, pod: Pod) -> Decision:
    """PreEnqueue and the scheduling cycle. Nothing is changed."""
    gate = cluster.engine.pre_enqueue(pod)
    if gate is not None:
        cycle = Cycle(pod, cluster.state)
        return Decision(pod, pod.spec.scheduler_name, Outcome.GATED, cycle, status=gate)
    return cluster.engine.decide(pod)


def reserve(cluster: ClusterModel, decision: Decision, undo: ExitStack) -> bool:
    """Assume the pod on its node and run Reserve. False if a plugin refuses: then the decision says so.

    `undo` is told how to take all of it back, where no plugin refuses.
    """
    with ExitStack() as when_plugin_breaks:
        when_plugin_breaks.callback(cluster.reserving.forget, decision)
        rejected = cluster.reserving.assume_and_reserve(decision)
        forgetting = when_plugin_breaks.pop_all()
    if rejected is not None:
        if rejected.is_rejection:
            rejected = Status(rejected.code, (f"{rejected.plugin}: {rejected.message}",), rejected.plugin)
        decision.outcome, decision.node, decision.status = Outcome.RESERVE_FAILED, "", rejected
        return False
    undo.enter_context(forgetting)
    return True

"""One pass over the pending pods: each is decided in the order of the queue and stands on its node for those after it.

No pod is evicted and none is tried twice: what preemption would do is reported, not done. Permit and binding are left
out, as there is no API server to write to.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.plugin import ReservePlugin
from kubesched.framework.status import Status
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.devices import settle_claims
from kubesched.simulate.preemption import Eviction, chosen_eviction


@dataclass(frozen=True, slots=True)
class Placed:
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
class Unplaced:
    """A pod that stays pending, in the words of its condition; `eviction` is what preemption would do for it."""

    pod: str
    priority: int
    outcome: str
    message: str
    eviction: Eviction | None = None


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """What became of the pending pods, in the order in which they were tried."""

    nodes: int
    seed: int
    placed: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]


def place(cluster: SimulatedCluster) -> PlacementReport:
    """Place all pending pods. The cluster's state holds them afterwards."""
    placed: list[Placed] = []
    unplaced: list[Unplaced] = []
    for pod in cluster.pending():
        outcome = place_one(cluster, pod)
        if isinstance(outcome, Placed):
            placed.append(outcome)
        else:
            unplaced.append(outcome)
    return PlacementReport(cluster.state.nodes.live_count, cluster.seed, tuple(placed), tuple(unplaced))


def place_one(cluster: SimulatedCluster, pod: Pod) -> Placed | Unplaced:
    """Decide on one pod; if it finds a node, it stands there from now on."""
    engine = cluster.engine
    if not engine.knows(pod.spec.scheduler_name):
        text = f"waits for another scheduler: there is no profile {pod.spec.scheduler_name!r}"
        return Unplaced(pod.key, pod.priority, "skipped", text)
    if pod.is_terminating:
        return Unplaced(pod.key, pod.priority, "skipped", "is being deleted")
    decision = schedule(cluster, pod)
    if decision.outcome is not Outcome.SCHEDULED:
        eviction = chosen_eviction(decision, cluster.state)
        return Unplaced(pod.key, pod.priority, decision.outcome.value, decision.message, eviction)
    return Placed(pod.key, pod.priority, decision.node, decision.score, decision.feasible, decision.draw.among)


def schedule(cluster: SimulatedCluster, pod: Pod) -> Decision:
    """Run PreEnqueue, the scheduling cycle and Reserve. A pod that finds a node stands there from now on."""
    gate = cluster.engine.pre_enqueue(pod)
    if gate is not None:
        cycle = Cycle(pod, cluster.state)
        return Decision(pod, pod.spec.scheduler_name, Outcome.GATED, cycle, status=gate)
    decision = cluster.engine.decide(pod)
    if decision.outcome is Outcome.SCHEDULED:
        refused = _assume_and_reserve(cluster, decision)
        if refused is not None:
            said = Status(refused.code, (f"{refused.plugin}: {refused.message}",), refused.plugin)
            decision.outcome, decision.node, decision.status = Outcome.RESERVE_FAILED, "", said
    return decision


def _assume_and_reserve(cluster: SimulatedCluster, decision: Decision) -> Status | None:
    """Put the pod on its node; if a plugin cannot set aside what it needs, all is as before and its status returned."""
    pod, node, state = decision.pod, decision.node, cluster.state
    assumed = state.assume(pod, node)
    asked: list[ReservePlugin] = []
    for plugin in cluster.profiles[decision.profile].at("reserve", ReservePlugin):
        asked.append(plugin)
        status = plugin.reserve(decision.cycle, pod, node)
        if status is not None:
            for reserved in reversed(asked):
                reserved.unreserve(decision.cycle, pod, node)
            state.forget(pod)
            return status.by(plugin.name)
    state.apply(assumed)
    settle_claims(decision, state)
    return None

"""Changes of the cluster that may help any pod: one more node, and pods that leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.api.pod import Pod
from kubesched.api.well_known import ZONE
from kubesched.ask.remedies.remedy import Trials
from kubesched.framework.advice import RemedyKind, RemedyProposal, created
from kubesched.framework.decision_view import DecisionView
from kubesched.framework.plugin import FilterPlugin
from kubesched.plugins.advice.evictions import delete_pods, list_pods, propose_eviction
from kubesched.simulate.nodes import is_daemon, one_more, pools_of
from kubesched.state.cluster import ClusterState

MOST_MODELS = 30
MOST_EVICTABLE = 40
HIGHEST_PRIORITY = 2**31 - 1


# -- nodes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NewNodeProposal(RemedyProposal):
    """One more node: of which pool, like which node, and in which zones it would help."""

    pool: str = ""
    like: str = ""
    zones: tuple[str, ...] = ()


def _new_node_text(pool: str, like: str, zones: tuple[str, ...]) -> str:
    where = f" in {' or '.join((', '.join(zones[:-1]), zones[-1]) if zones[1:] else zones)}" if zones else ""
    return f"Add a node to {pool}{where}, like {like}"


def propose_new_nodes(state: ClusterState) -> Iterator[NewNodeProposal]:
    """One more node of each pool, in each of its zones."""
    pools = pools_of(state)
    models = [(pool, model) for pool in pools for model in pool.models]
    models += [(pool, model) for pool in pools for model in pool.others]
    for place, (pool, model) in enumerate(models[:MOST_MODELS]):
        zone = model.metadata.labels.get(ZONE, "") if len(pool.models) > 1 else ""
        zones = (zone,) if zone else ()
        text = _new_node_text(pool.title, model.name, zones)
        edits = tuple(created(obj) for obj in one_more(state, model))
        yield NewNodeProposal(
            RemedyKind.ADD_NODE, text, edits, place, "new node", pool=pool.title, like=model.name, zones=zones
        )


def merge_zones(proposals: Iterable[RemedyProposal]) -> Iterator[RemedyProposal]:
    """The proposals, with new nodes of one pool in several zones as one that names the zones."""
    pools: dict[str, list[NewNodeProposal]] = {}
    for proposal in proposals:
        if isinstance(proposal, NewNodeProposal):
            pools.setdefault(proposal.pool, []).append(proposal)
        else:
            yield proposal
    for pool, alike in pools.items():
        zones = tuple(dict.fromkeys(zone for proposal in alike for zone in proposal.zones))
        yield dataclasses.replace(alike[0], text=_new_node_text(pool, alike[0].like, zones), zones=zones)


# -- pods that leave --------------------------------------------------------------------------------------------------


def propose_waiting(state: ClusterState) -> Iterator[RemedyProposal]:
    """Pods that are being deleted are gone soon."""
    leaving = [placed.pod for placed in state.pods.at if placed is not None and placed.pod.is_terminating]
    if leaving:
        text = f"Wait until {list_pods(leaving)} {'is' if len(leaving) == 1 else 'are'} gone: being deleted already"
        yield RemedyProposal(RemedyKind.WAIT_FOR_PODS, text, delete_pods(leaving, state), len(leaving), "leaving")


def propose_preemption_by_anybody(trials: Trials, pod: Pod) -> Iterator[RemedyProposal]:
    """The pods that would have to leave if priorities did not matter: what preemption would do for the highest."""
    spec = replace(pod.spec, priority=HIGHEST_PRIORITY, preemption_policy="PreemptLowerPriority", scheduling_gates=())
    status = replace(pod.status, nominated_node_name="")
    result = trials.decide(replace(pod, spec=spec, status=status)).post_filter
    if result is not None and result.nominated and result.victims:
        yield propose_eviction([victim.pod for victim in result.victims], trials.state, result.nominated)


def propose_single_evictions(trials: Trials, view: DecisionView) -> Iterator[RemedyProposal]:
    """Single pods that a rejecting filter looks at, wherever they are: one that keeps the pod out of a zone need not be
    on the node that the pod goes to."""
    if view.outcome is None:
        return
    rejecting = {rejections.plugin for rejections, _ in view.outcome.columns}
    filters = [f for f in view.profile.at("filter", FilterPlugin) if f.name in rejecting and f.looks_at_pods]
    victims: list[Pod] = []
    judged: dict[int, bool] = {}
    for placed in trials.state.pods.at:
        if placed is None or is_daemon(placed.pod):
            continue
        facts = id(placed.facts)
        if facts not in judged:
            judged[facts] = any(plugin.depends_on_pod(view.cycle, placed) for plugin in filters)
        if judged[facts]:
            victims.append(placed.pod)
        if len(victims) > MOST_EVICTABLE:
            return
    for other in victims:
        yield propose_eviction([other], trials.state, other.spec.node_name)

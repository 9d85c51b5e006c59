"""Looks for remedies: tries every proposal by itself; if none is enough, pairs that together leave nothing in the way.

Plugins make the proposals (`AdvicePlugin.remedies`); new nodes and evictions are proposed for any pod. A trial says
what is still in the way on every row (`TrialOutcome.blocked`): two proposals are worth a trial together if there is a
row on which no plugin rejects the pod after both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from msgspec.structs import replace

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.remedies.cluster_options import (
    NewNodeProposal,
    merge_zones,
    propose_new_nodes,
    propose_preemption_by_anybody,
    propose_single_evictions,
    propose_waiting,
)
from kubesched.ask.remedies.harm import EvictionRules, cost_of, ends_by_itself, evicted_by, touched_by
from kubesched.ask.remedies.remedy import Remedies, Remedy, RemedyStep, TrialOutcome, Trials, changes_of, describe
from kubesched.framework.advice import MOST_NODES, AdvicePlugin, RemedyKind, RemedyProposal, propose_spec
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision_view import DecisionView
from kubesched.framework.nodes import Nodes
from kubesched.plugins.advice.evictions import delete_pods, list_pods, sharing_ports
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.columns import Rows

MOST_OF_A_KIND = 3
MOST_NEW_NODES = 8
MOST_PAIRS = 5


def trials_for(nodes: int) -> int:
    """How many trials one search may make: fewer in a larger cluster, so that its time is bounded."""
    return 100 + 1_500_000 // max(nodes, 1000)


def remedies(cluster: ClusterModel, pod: Pod, *, out_of_time: Callable[[], bool] = lambda: False) -> Remedies:
    """What would help a pod that is pending and fits nowhere. The cluster is the same afterwards.

    `out_of_time` is asked before each proposal is tried: what was found until then is the answer.
    """
    return _Search(cluster, pod, out_of_time).remedies()


def _without_gates(pod: Pod) -> RemedyProposal:
    names = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    text = f"Remove the scheduling gate{'' if len(pod.spec.scheduling_gates) == 1 else 's'} {names}"
    return propose_spec(pod, RemedyKind.REMOVE_GATES, text, lambda spec: replace(spec, scheduling_gates=()))


def nearest_first(view: DecisionView) -> Rows:
    """All live rows: the nearest misses, then what pre-filters left out."""
    missed = view.nearest_rows()
    others = view.live.copy()
    others[missed] = False
    return np.concatenate((np.array(missed, dtype=np.intp), np.flatnonzero(others)))


def _listed_remedies(plugin: AdvicePlugin, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> list[RemedyProposal]:
    return list(plugin.remedies(cycle, nearest, only_here))


class _Search:
    def __init__(self, cluster: ClusterModel, pod: Pod, out_of_time: Callable[[], bool]) -> None:
        self._pod = pod
        most = trials_for(cluster.state.nodes.live_count)
        self._trials = Trials(cluster, pod, most=most, out_of_time=out_of_time)
        self._always: tuple[RemedyProposal, ...] = (_without_gates(pod),) if pod.spec.scheduling_gates else ()
        self._skipped = False
        self._rules = EvictionRules(cluster, pod)

    def remedies(self) -> Remedies:
        if self._trials.run(self._always).node:
            remedy = self._remedy(()) if self._always else None
            return self._answer([remedy] if remedy is not None else [])
        decision = self._trials.decide(self._pod)
        view = DecisionView(decision, self._trials.cluster.profiles[decision.profile])
        remedies = list(self._preemption(view))
        proposals, outcomes = self._singles(view)
        helping = [i for i, outcome in enumerate(outcomes) if outcome.node]
        if remedies:  # preemption chooses its victims itself
            helping = [i for i in helping if proposals[i].kind is not RemedyKind.EVICT]
        remedies += self._tuned_singles([proposals[i] for i in helping])
        if not helping and not remedies:
            remedies += self._pairs(proposals, outcomes)
        return self._answer(remedies)

    def _answer(self, remedies: Sequence[Remedy]) -> Remedies:
        every = not self._skipped and self._trials.state.nodes.live_count <= MOST_NODES
        return Remedies(self._pod.key, tuple(remedies), self._trials.tried, exhaustive=every)

    # -- singles ------------------------------------------------------------------------------------------------------

    def _preemption(self, view: DecisionView) -> Iterator[Remedy]:
        """What the scheduler will do by itself."""
        result, state = view.decision.post_filter, self._trials.state
        if self._always or result is None or not result.nominated:
            return
        victims = [victim.pod for victim in result.victims]
        if sharing_ports(victims, state, result.nominated):
            return
        text = f"Wait: the scheduler makes room by itself on {result.nominated}, by evicting {list_pods(victims)}"
        proposal = RemedyProposal(RemedyKind.PREEMPTION, text, delete_pods(victims, state))
        if (remedy := self._remedy((proposal,))) is not None:
            yield remedy

    def _proposals(self, view: DecisionView) -> Iterator[RemedyProposal]:
        """The proposals of plugins first, but changes of single nodes late: there are most of them."""
        state = self._trials.state
        proposed = list(self._proposed_by_plugins(view))
        of_nodes = [proposal for proposal in proposed if isinstance(proposal.edits[0].obj, Node)]
        yield from propose_waiting(state)
        yield from (proposal for proposal in proposed if not isinstance(proposal.edits[0].obj, Node))
        yield from propose_new_nodes(state)
        yield from propose_preemption_by_anybody(self._trials, self._pod)
        yield from sorted(of_nodes, key=lambda proposal: proposal.size)
        yield from propose_single_evictions(self._trials, view)

    def _proposed_by_plugins(self, view: DecisionView) -> Iterator[RemedyProposal]:
        bits: dict[str, int] = {}
        rejecting, cycle = view.rejecting_plugins(bits), view.cycle
        nearest = Nodes(view.state, nearest_first(view))
        for plugin in view.profile.plugins.values():
            if isinstance(plugin, AdvicePlugin):
                only_here = Nodes(view.state, np.flatnonzero(view.live & (rejecting == bits.get(plugin.name, -1))))
                yield from cycle.ask(
                    plugin.name, "Advice", partial(_listed_remedies, plugin), cycle, nearest, only_here
                )

    def _singles(self, view: DecisionView) -> tuple[list[RemedyProposal], list[TrialOutcome]]:
        """All proposals with what each of them comes to."""
        proposals: list[RemedyProposal] = []
        outcomes: list[TrialOutcome] = []
        texts: set[str] = set()
        for proposal in self._proposals(view):
            if proposal.text in texts or not self._rules.allow(evicted_by(proposal)):
                continue
            texts.add(proposal.text)
            if self._trials.are_over:
                self._skipped = True
                break
            proposals.append(proposal)
            outcomes.append(self._trials.run((*self._always, proposal)))
        return proposals, outcomes

    def _tuned_singles(self, helping: Iterable[RemedyProposal]) -> Iterator[Remedy]:
        """Of each kind the smallest few, in the mildest degree that helps."""
        tuned = [self._tuned(proposal, ()) for proposal in merge_zones(helping)]
        tuned.sort(key=lambda proposal: proposal.cost)
        shown: Counter[RemedyKind] = Counter()
        relaxed = {proposal.about for proposal in tuned if proposal.kind is RemedyKind.RELAX_SPREAD}
        for proposal in tuned:
            if proposal.kind is RemedyKind.DROP_SPREAD and proposal.about in relaxed:
                continue  # a greater skew is enough
            shown[proposal.kind] += 1
            if shown[proposal.kind] <= (MOST_NEW_NODES if proposal.kind is RemedyKind.ADD_NODE else MOST_OF_A_KIND):
                remedy = self._remedy((proposal,))
                if remedy is None:
                    shown[proposal.kind] -= 1
                else:
                    yield remedy

    def _tuned(self, proposal: RemedyProposal, others: tuple[RemedyProposal, ...]) -> RemedyProposal:
        if proposal.tune is None:
            return proposal
        return proposal.tune(lambda milder: self._trials.fits((*self._always, *others, milder)))

    # -- pairs --------------------------------------------------------------------------------------------------------

    def _pairs(self, proposals: Sequence[RemedyProposal], outcomes: Sequence[TrialOutcome]) -> list[Remedy]:
        order = sorted(range(len(proposals)), key=lambda i: proposals[i].cost)
        pairs = [
            (proposals[i], proposals[j])
            for i, j in combinations(order, 2)
            if proposals[i].subject != proposals[j].subject and self._may_do(proposals, outcomes, i, j)
        ]
        pairs.sort(key=lambda pair: sum(proposal.kind.rank for proposal in pair))
        remedies: list[Remedy] = []
        shown: Counter[frozenset[RemedyKind]] = Counter()
        for pair in pairs:
            kinds = frozenset(proposal.kind for proposal in pair)
            if shown[kinds] >= 2:
                continue
            if self._trials.are_over or len(remedies) >= MOST_PAIRS:
                self._skipped |= not remedies
                break
            if not self._trials.fits((*self._always, *pair)):
                continue
            first = self._tuned(pair[0], (pair[1],))
            second = self._tuned(pair[1], (first,))
            remedy = self._remedy((first, second))
            if remedy is not None:
                remedies.append(remedy)
                shown[kinds] += 1
        return remedies

    def _may_do(self, proposals: Sequence[RemedyProposal], outcomes: Sequence[TrialOutcome], i: int, j: int) -> bool:
        """Whether some row is left with nothing in the way."""
        first, second = outcomes[i], outcomes[j]
        rows = min(len(first.blocked), len(second.blocked))
        if bool((first.blocked[:rows] & second.blocked[:rows] == 0).any()):
            return True
        return self._on_new_node(proposals[i], first, second) or self._on_new_node(proposals[j], second, first)

    def _on_new_node(self, proposal: RemedyProposal, outcome: TrialOutcome, other: TrialOutcome) -> bool:
        """On the row of a new node, a change of the node that it is copied from has the same effect."""
        if not isinstance(proposal, NewNodeProposal):
            return False
        like = self._trials.state.nodes.row_of[proposal.like]
        return int(outcome.blocked[outcome.new_row]) & int(other.blocked[like]) == 0

    # -- words --------------------------------------------------------------------------------------------------------

    def _remedy(self, proposals: tuple[RemedyProposal, ...]) -> Remedy | None:
        """None if the pod finds no node, or if another pod would wait instead."""
        all_proposals = (*self._always, *proposals)
        node = self._trials.node_with(all_proposals)
        if not node:
            return None
        evicted = [pod for proposal in all_proposals for pod in evicted_by(proposal)]
        coming_back = [pod for pod in evicted if pod.metadata.controller is not None and not ends_by_itself(pod)]
        new_nodes = self._trials.new_nodes(all_proposals, coming_back) if coming_back else {}
        if new_nodes is None:
            return None
        steps = tuple(RemedyStep(proposal.kind, proposal.text) for proposal in all_proposals)
        changes = changes_of(edit for proposal in all_proposals for edit in proposal.edits)
        cost, touches = cost_of(all_proposals, self._pod, new_nodes), touched_by(all_proposals, self._pod)
        return Remedy(steps, node, tuple(map(describe, changes)), cost, touches)

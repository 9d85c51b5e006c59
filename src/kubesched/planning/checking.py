"""Makes a plan that executes of the placements that a search found: puts moves into waves, asks the engine about each,
and simulates the plan in virtual time. Moves that fail are taken out of the plan, and the rest is checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.ask.output import counted
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.execution import execute
from kubesched.planning.movable import Movable
from kubesched.planning.oracle import Oracle
from kubesched.planning.plan import Plan, PlanCheck, PlannedMove, PlannedNode, PlannedPlacement
from kubesched.simulate.cluster import ClusterModel

LARGEST_WAVE = 100
_ROUNDS = 4
WITH_NOMINATIONS = "carried out in virtual time, wave by wave, with disruption budgets; each pod nominated to its node"
WITHOUT = "the same without nominations, where the scheduler chooses"


@dataclass
class Draft:
    """What a search found, before it is checked."""

    moves: list[tuple[Pod, str]]
    """Pods with the nodes that they are to go to."""
    nodes: list[PlannedNode]
    placements: list[tuple[Pod, str]]
    """Pending pods with their nodes."""
    new: tuple[KubeObject, ...] = ()
    """Nodes that are added, with what belongs to them."""
    asked: int = 0
    """Placements that the engine was asked for."""
    refused: int = 0
    """How many of these the engine refused."""


class Sequencer:
    """Puts moves into waves: within a wave every pod leaves before any comes, so the order does not matter."""

    def __init__(self, cluster: ClusterModel, movable: Movable, draft: Draft, largest: int = LARGEST_WAVE) -> None:
        self._cluster = cluster
        self._budgets = movable.budgets
        self._draft = draft
        self._largest = largest
        self.refused: list[Pod] = []
        """Pods whose moves the engine refuses in any order."""

    def run(self) -> tuple[list[PlannedMove], list[PlannedPlacement]]:
        if not self._draft.moves:  # the engine has agreed to the placements, as they are, in the search
            return [], [PlannedPlacement(pod.key, node) for pod, node in self._draft.placements]
        moves: list[PlannedMove] = []
        with Oracle(self._cluster) as oracle:
            oracle.add_objects(self._draft.new)
            remaining, wave = list(self._draft.moves), 0
            while remaining:
                wave += 1
                accepted = self._wave(oracle, remaining) or self._together(oracle, remaining)
                if not accepted:
                    self.refused = [pod for pod, _ in remaining]
                    break
                moved = {pod.uid for pod, _ in accepted}
                remaining = [move for move in remaining if move[0].uid not in moved]
                moves += [PlannedMove(pod.key, pod.spec.node_name, node, wave) for pod, node in accepted]
            placements = self._placements(oracle, wave)
            self._draft.asked += oracle.asked
        return moves, placements

    def _wave(self, oracle: Oracle, moves: Sequence[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
        """The moves that the engine accepts now, one after another, and that budgets allow at the same time."""
        accepted, used = list[tuple[Pod, str]](), Counter[str]()
        for pod, node in moves:
            if len(accepted) == self._largest:
                break
            guards = [budget.key for budget in self._budgets.guarding(pod)]
            if any(used[key] >= max(1, self._budgets.allowed(key)) for key in guards):
                continue
            with oracle.trying() as keep:
                if oracle.place(oracle.take_off(pod), oracle.row(node)):
                    keep()
                    accepted.append((pod, node))
                    used.update(guards)
        return accepted

    def _together(self, oracle: Oracle, moves: Sequence[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
        """Moves that need each other: all leave first. None if the engine refuses, or budgets forbid it."""
        used = Counter(budget.key for pod, _ in moves for budget in self._budgets.guarding(pod))
        if any(count > self._budgets.allowed(key) for key, count in used.items()):
            return []
        with oracle.trying() as keep:
            off = [(oracle.take_off(pod), node) for pod, node in moves]
            if not all(oracle.place(pod, oracle.row(node)) for pod, node in off):
                return []
            keep()
        return list(moves)

    def _placements(self, oracle: Oracle, wave: int) -> list[PlannedPlacement]:
        placed = []
        for pod, node in self._draft.placements:
            if oracle.place(pod, oracle.row(node)):
                placed.append(PlannedPlacement(pod.key, node, wave))
            else:
                self.refused.append(pod)
        return placed


def check_plan(cluster: ClusterModel, movable: Movable, plan: Plan, draft: Draft, search: PlanSearch) -> Plan:
    """The plan with its moves in waves, once it executes. Nodes whose pods do not move as planned stay in use."""
    largest = LARGEST_WAVE
    for _ in range(_ROUNDS):
        sequencer = Sequencer(cluster, movable, draft, largest)
        moves, placements = sequencer.run()
        failed = {pod.key for pod in sequencer.refused}
        if not failed:
            plan = replace(plan, moves=tuple(moves), placements=tuple(placements), nodes=tuple(draft.nodes))
            search.report(f"checking {len(moves)} moves in {plan.waves} waves")
            done = execute(cluster, plan, nominate=True, new=draft.new, seed=search.seed)
            if done.is_as_planned:
                return replace(plan, check=_free_check(cluster, plan, draft, search, done.seconds))
            if not moves and not done.stuck and not done.unplaced:
                # groups of pods heed no nominations: the plan is what the scheduler makes of it, checked once more
                draft.placements = [(pod, done.astray.get(pod.key, node)) for pod, node in draft.placements]
                continue
            if largest > 1 and len(moves) <= LARGEST_WAVE and plan.waves < len(moves):
                largest = 1  # pods of one wave may take each other's room
                continue
            failed = {*done.astray, *done.stuck, *done.unplaced}
        draft = _without(draft, failed)
        if not draft.moves and not draft.placements and not draft.nodes:
            break
    return replace(plan, moves=(), placements=(), nodes=(), check=None)


def _free_check(cluster: ClusterModel, plan: Plan, draft: Draft, search: PlanSearch, seconds: float) -> PlanCheck:
    """The check of the plan without nominations, where the scheduler chooses the nodes."""
    how = (f"{counted(draft.asked, 'placement')} decided by the scheduler's engine, Reserve included", WITH_NOMINATIONS)
    if not plan.moves and not plan.placements:
        return PlanCheck(how, draft.asked, draft.refused, seconds)
    free = execute(cluster, plan, nominate=False, new=draft.new, seed=search.seed)
    stuck = len(free.stuck) + len(free.unplaced)
    needs = bool(stuck or free.violations)
    return PlanCheck((*how, WITHOUT), draft.asked, draft.refused, seconds, needs, len(free.astray), stuck)


def _without(draft: Draft, keys: Collection[str]) -> Draft:
    """Without these pods, the nodes that they stand on, and all that only serves to empty those."""
    nodes = {pod.spec.node_name for pod, _ in draft.moves if pod.key in keys}
    return replace(
        draft,
        moves=[(pod, node) for pod, node in draft.moves if pod.key not in keys and pod.spec.node_name not in nodes],
        nodes=[node for node in draft.nodes if node.name not in nodes],
        placements=[(pod, node) for pod, node in draft.placements if pod.key not in keys],
        refused=draft.refused + len(keys),
    )

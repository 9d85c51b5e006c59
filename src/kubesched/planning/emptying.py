"""Empties nodes one after another: each pod goes to the node with least room left, if the engine agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from kubesched.api.pod import Pod
from kubesched.planning.movable import Movable
from kubesched.planning.oracle import Oracle
from kubesched.planning.packing import Packing
from kubesched.state.columns import Bool

_TRIES = 2
"""How many of the tightest rows are proposed to the engine one by one before it is asked about all."""


@dataclass
class PlanSearch:
    """How a search goes on: what it tells, and when it has to end. Work is counted, not timed."""

    tell: Callable[[str], None] = lambda text: None
    """Takes what is best so far and the bound, in words."""
    is_over: Callable[[], bool] = lambda: False
    """Whether the search is to end with the best so far: time is up, or Ctrl-C was pressed."""
    effort: int = 200
    """How many neighbourhoods are tried at most."""
    seed: int = 0
    bound: str = field(default="", init=False)
    """What no plan can do better than, in words, once it is known."""
    was_cut: bool = field(default=False, init=False)

    def report(self, best: str) -> None:
        """This is the best so far."""
        self.tell(f"{best}; {self.bound}" if self.bound else best)

    def goes_on(self) -> bool:
        self.was_cut = self.was_cut or self.is_over()
        return not self.was_cut


class Emptying:
    """Where movable pods are, in the engine's cluster and in the arrays, as nodes are emptied."""

    def __init__(self, oracle: Oracle, packing: Packing, movable: Movable) -> None:
        self.oracle = oracle
        self.packing = packing
        self.closed: Bool = np.zeros(len(packing.live), dtype=np.bool_)
        """Rows that are emptied."""
        self.began: dict[str, int] = {}
        """By uid: the row where a pod is at first."""
        self.at: dict[str, int] = {}
        """By uid: the row where a pod is now."""
        self.on: dict[int, dict[str, Pod]] = {}
        """By row and uid: the movable pods."""
        for name, pods in movable.pods.items():
            row = oracle.row(name)
            self.on[row] = {pod.uid: pod for pod in pods}
            self.began |= dict.fromkeys(self.on[row], row)
        self.at |= self.began
        self.move_count = 0

    @property
    def moved(self) -> list[Pod]:
        """The pods that are elsewhere than at first."""
        return [pod for row, pods in self.on.items() for uid, pod in pods.items() if self.began[uid] != row]

    def empty(self, rows: Iterable[int], avoid: Bool, pays: Callable[[], bool] = lambda: True) -> bool:
        """Whether all pods of these rows find others that are not closed, and that pays; if not, all is as it was.

        Rows to `avoid` are taken only if no others will do.
        """
        rows = list(rows)
        pods = [pod for row in rows for pod in self.on[row].values()]
        if any(not self.may_move(pod) for pod in pods):
            return False
        allowed = self.packing.live & ~self.closed
        allowed[rows] = False
        if not self.relocate_all(pods, allowed, avoid, pays):
            return False
        self.closed[rows] = True
        return True

    def relocate_all(self, pods: Iterable[Pod], allowed: Bool, avoid: Bool | None, agrees: Callable[[], bool]) -> bool:
        """Whether all pods find other rows, and it `agrees` with them there; if not, all is as it was."""
        done: list[tuple[Pod, int]] = []
        with self.oracle.trying() as keep:
            for pod in self.packing.by_size(pods):
                before = self.at[pod.uid]
                if self.relocate(pod, allowed, avoid) is None:
                    break
                done.append((pod, before))
            else:
                if agrees():
                    keep()
                    return True
        for pod, row in reversed(done):
            self.note(pod, row)
        return False

    def relocate(self, pod: Pod, allowed: Bool, avoid: Bool | None = None) -> int | None:
        """Move a pod to one of these rows; the row, or None if no row takes it: then it is off its node."""
        off = self.oracle.take_off(pod)
        preferences = (allowed,) if avoid is None else (allowed & ~avoid, allowed & avoid)
        for rows in preferences:
            row = self.settle(off, rows)
            if row is not None:
                self.note(pod, row)
                return row
        return None

    def settle(self, pod: Pod, rows: Bool) -> int | None:
        """Place a pod that has no node on the tightest of these rows that the engine agrees to."""
        packing, kind = self.packing, self.packing.kind_of[pod.uid]
        rows = rows & packing.fits[kind] & (packing.free >= packing.requests[kind]).all(axis=1)
        if packing.per_node[kind] == 1:
            rows &= packing.counts[kind] == 0
        for tried in count(1):
            if not rows.any():
                return None
            row = packing.tightest(kind, rows)
            if self.oracle.place(pod, row):
                return row
            rows[row] = False
            if tried >= _TRIES:
                rows &= self.oracle.feasible(pod, rows)
        return None

    def may_move(self, pod: Pod) -> bool:
        """Whether it can be moved, perhaps again.

        What was set aside of volumes and devices for a pod that was moved is not given back within one search.
        """
        return self.at[pod.uid] == self.began[pod.uid] or not (pod.spec.volumes or pod.spec.resource_claims)

    def note(self, pod: Pod, row: int) -> None:
        """The pod stands on this row now."""
        before = self.at[pod.uid]
        self.packing.move(self.packing.kind_of[pod.uid], before, row)
        self.move_count += (row != self.began[pod.uid]) - (before != self.began[pod.uid])
        self.at[pod.uid] = row
        self.on[row][pod.uid] = self.on[before].pop(pod.uid)

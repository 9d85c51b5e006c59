"""What a search found on every row, kept per demand and repaired where devices, or their use, have changed.

Between two pods that ask for the same, the devices of one node change. So one node is searched anew. Nodes that have
alike devices, of which the same are in use, are searched once for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from kubesched.api.device_claims import ResourceClaim, ResourceClaimSpec
from kubesched.api.devices import DeviceClass
from kubesched.framework.budget import TurnOverError
from kubesched.plugins.shared.devices.allocation import check_nodes
from kubesched.plugins.shared.devices.demand import AllocationError, Demand, SearchTime
from kubesched.plugins.shared.devices.device_equivalence import DeviceEquivalence
from kubesched.plugins.shared.devices.inventory import DeviceUse, Inventories, Inventory
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.plugins.shared.devices.search import FoundDevices, Path, Search
from kubesched.plugins.shared.devices.selecting import Names, Selectors
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64

_DEMANDS_KEPT = 64
_LIKENESSES_KEPT = 32
_OUTCOMES_KEPT = 1 << 15


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """How a search ended: with devices, with none, or with an error."""

    found: FoundDevices | None = None
    error: AllocationError | None = None
    has_invalid_pools: bool = False


class DeviceAnswer:
    """The outcomes of all rows for one demand."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.position = -1
        self.outcomes: list[SearchOutcome] = []
        self.fits: Bool = np.zeros(0, dtype=np.bool_)
        self.scores: Int64 = np.zeros(0, dtype=np.int64)
        self.failures: dict[int, SearchOutcome] = {}
        """Rows where nothing was found for another reason than that there is nothing."""
        self.known: dict[Hashable, SearchOutcome] = {}
        """By shape and use of an inventory: how the search there ends."""
        self.stale: dict[int, None] = {}
        """Rows that are still to be searched, in order, since the search took long and was interrupted."""
        self.path: tuple[Hashable, Path] = (None, ())
        """The inventory, by shape and use, where it was interrupted, and how far it had come there."""

    def set(self, row: int, outcome: SearchOutcome) -> None:
        self.outcomes[row] = outcome
        found = outcome.found
        self.fits[row] = found is not None
        self.scores[row] = 0 if found is None else found.score
        if outcome.error is not None or (found is None and outcome.has_invalid_pools):
            self.failures[row] = outcome
        else:
            self.failures.pop(row, None)


class ClusterDevices:
    """All that is known about devices on one cluster; profiles share it."""

    def __init__(self, state: ClusterState) -> None:
        self.ledger = Ledger(state.objects, shares=state.features.device_capacity)
        self.inventories = Inventories(state, self.ledger)
        self._state = state
        self.selectors = Selectors()
        self._likenesses: dict[Names | None, DeviceEquivalence] = {}
        self._answers: dict[Hashable, DeviceAnswer] = {}
        self._encode = msgspec.json.Encoder().encode

    def answer(self, specs: Sequence[ResourceClaimSpec], time: SearchTime) -> DeviceAnswer:
        """The outcomes for claims that ask for this, up to date. TurnOverError if that takes long."""
        self.inventories.refresh()
        key = self._encode(specs), self._state.objects.version(DeviceClass)
        answer = self._answers.pop(key, None)
        if answer is None:
            while len(self._answers) >= _DEMANDS_KEPT:
                del self._answers[next(iter(self._answers))]
            answer = DeviceAnswer(self._demand(specs))
        self._answers[key] = answer
        if answer.stale:
            time.let_others_go_first()
        self._bring_up_to_date(answer, time)
        return answer

    def words(self, error: AllocationError, row: int, claims: Sequence[ResourceClaim]) -> str:
        """An error in words, as it is on one row."""
        inventory = self.inventories.of(row)
        pool = device = ""
        if inventory.pools:
            found = inventory.pools[error.pool]
            pool = f"{found.driver}/{found.name}"
        if inventory.spots:
            device = "/".join(inventory.spots[error.spot].id)
        claim, node = claims[error.claim], self._state.nodes.names[row]
        return error.words.format(claim=claim.key, claim_name=claim.name, pool=pool, device=device, node=node)

    def _demand(self, specs: Sequence[ResourceClaimSpec]) -> Demand:
        classes = {found.name: found for found in self._state.objects.all(DeviceClass)}
        demand = Demand(specs, classes, self.selectors, self._state.features)
        names = demand.names
        likeness = self._likenesses.get(names)
        if likeness is None:
            if len(self._likenesses) >= _LIKENESSES_KEPT:
                self._likenesses.clear()
                self.inventories.forget_shapes()
            likeness = self._likenesses[names] = DeviceEquivalence(names)
        demand.look_with(likeness)
        return demand

    def _bring_up_to_date(self, answer: DeviceAnswer, time: SearchTime) -> None:
        size, changes = self._state.nodes.size, self.inventories.changes
        rows = changes.since(answer.position) if answer.position >= 0 and len(answer.outcomes) == size else None
        if rows is None:
            answer.outcomes = [SearchOutcome()] * size
            answer.fits = np.zeros(size, dtype=np.bool_)
            answer.scores = np.zeros(size, dtype=np.int64)
            answer.failures.clear()
            rows = list(range(size))
        answer.stale.update(dict.fromkeys(rows))
        answer.position = changes.position
        outcomes: dict[Inventory, SearchOutcome] = {}
        given_up: SearchOutcome | None = None
        for row in tuple(answer.stale):
            inventory = self.inventories.of(row)
            outcome = given_up or outcomes.get(inventory)
            if outcome is None:
                outcome = outcomes[inventory] = self._outcome(answer, inventory, time)
                if outcome.error is not None and outcome.error.is_passing:
                    given_up = outcome  # the attempt fails with it anyway; what is known helps the next one
            answer.set(row, outcome)
            if given_up is None:
                del answer.stale[row]

    def _outcome(self, answer: DeviceAnswer, inventory: Inventory, time: SearchTime) -> SearchOutcome:
        use = inventory.use(self.ledger)
        key = (answer.demand.likeness.shape_of(inventory), use)
        outcome = answer.known.get(key)
        if outcome is None:
            try:
                found = self._search(answer, inventory, use, key, time)
                if found is not None:
                    check_nodes(found, inventory)
                outcome = SearchOutcome(found, has_invalid_pools=inventory.has_invalid_pools)
            except AllocationError as error:
                outcome = SearchOutcome(error=error.with_traceback(None))
                if error.is_passing:
                    return outcome
            if len(answer.known) >= _OUTCOMES_KEPT:
                answer.known.clear()
            answer.known[key] = outcome
        return outcome

    def _search(
        self, answer: DeviceAnswer, inventory: Inventory, use: DeviceUse, key: Hashable, time: SearchTime
    ) -> FoundDevices | None:
        where, path = answer.path
        search = Search(answer.demand, inventory, use, time, path if where == key else ())
        try:
            return search.run()
        except TurnOverError:
            answer.path = key, search.path
            raise

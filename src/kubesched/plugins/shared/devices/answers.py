"""What a search found on every row, kept per demand and repaired where devices, or their use, have changed.

Between two pods that ask for the same, the devices of one node change. So one node is searched anew. Nodes that have
alike devices, of which the same are in use, are searched once for all of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from hashlib import blake2b

import msgspec

from kubesched.api.device_claims import ResourceClaim, ResourceClaimSpec
from kubesched.api.devices import DeviceClass
from kubesched.cel import Names
from kubesched.framework.budget import TurnOverError
from kubesched.plugins.shared.devices.allocation import check_nodes
from kubesched.plugins.shared.devices.demand import AllocationError, Demand, SearchTime
from kubesched.plugins.shared.devices.device_answer import DeviceAnswer, SearchOutcome
from kubesched.plugins.shared.devices.device_equivalence import DeviceEquivalence
from kubesched.plugins.shared.devices.inventory import DeviceUse, Inventories, Inventory
from kubesched.plugins.shared.devices.kept_answers import BYTES_KEPT, KeptAnswers
from kubesched.plugins.shared.devices.ledger import Ledger
from kubesched.plugins.shared.devices.search import FoundDevices, Search
from kubesched.plugins.shared.devices.selecting import Selectors
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts

_OUTCOMES_KEPT = 1 << 12


class ClusterDevices:
    """All that is known about devices on one cluster; profiles share it."""

    def __init__(self, state: ClusterState) -> None:
        self.ledger = Ledger(state.objects, shares=state.features.device_capacity)
        self.inventories = Inventories(state, self.ledger)
        self._state = state
        self.selectors = Selectors(state.features.release)
        self._likenesses: weakref.WeakValueDictionary[Names | None, DeviceEquivalence] = weakref.WeakValueDictionary()
        self.kept = KeptAnswers()
        self._encode = msgspec.json.Encoder().encode

    def answer(
        self, specs: Sequence[ResourceClaimSpec], time: SearchTime, facts: PodFacts | None = None
    ) -> DeviceAnswer:
        """The outcomes for claims that ask for this, up to date. TurnOverError if that takes long.

        Outcomes found until then are kept, with the facts of the pod if they are too large for the cache.
        """
        self.inventories.refresh(time.prepared)
        key = blake2b(self._encode(specs)).digest(), self._state.objects.version(DeviceClass)
        answer = self.kept.get(key, facts)
        if answer is None:
            answer = DeviceAnswer(key, self._demand(specs))
            position = self.inventories.changes.position
            if (verdict := self.kept.verdict(key, position)) is not None:
                answer.set_all(answer.resize(self._state.nodes.size), verdict)
                return answer
            if not self.kept.may_begin(answer.size):
                time.wait()
        elif not answer.is_finished:
            time.let_others_go_first()
        time.fruitless = answer.fruitless
        try:
            self._compile(answer, time)
            self._bring_up_to_date(answer, time)
        finally:
            answer.fruitless = time.fruitless
            self.kept.put(answer, facts)
        return answer

    def message_of(self, error: AllocationError, row: int, claims: Sequence[ResourceClaim]) -> str:
        """The text of an error, as it is on one row."""
        inventory = self.inventories.of(row)
        pool = device = device_name = ""
        if inventory.pools:
            pool = inventory.pools[error.pool].title
        if inventory.spots:
            device = "/".join(inventory.spots[error.spot].id)
            device_name = inventory.spots[error.spot].device.name
        claim, node = claims[error.claim], self._state.nodes.names[row]
        return error.text.format(
            claim=claim.key, claim_name=claim.name, pool=pool, device=device, device_name=device_name, node=node
        )

    def _demand(self, specs: Sequence[ResourceClaimSpec]) -> Demand:
        classes = {device_class.name: device_class for device_class in self._state.objects.all(DeviceClass)}
        return Demand(specs, classes, self.selectors, self._state.features)

    def _compile(self, answer: DeviceAnswer, time: SearchTime) -> None:
        if not answer.is_compiled:
            demand = answer.demand
            demand.compile(time)
            names = demand.names
            demand.likeness = self._likenesses.setdefault(names, DeviceEquivalence(names))
            answer.is_compiled = True

    def _bring_up_to_date(self, answer: DeviceAnswer, time: SearchTime) -> None:
        size, changes = self._state.nodes.size, self.inventories.changes
        rows = changes.since(answer.position) if answer.position >= 0 and len(answer.outcomes) <= size else None
        if rows is None:
            answer.begin_anew()
            rows = []
        answer.stale.update(dict.fromkeys((*rows, *answer.resize(size))))
        answer.position = changes.position
        outcomes: dict[Inventory, SearchOutcome] = {}
        for row in tuple(answer.stale):
            inventory = self.inventories.of(row)
            outcome = outcomes.get(inventory)
            if outcome is None:
                outcome = outcomes[inventory] = self._outcome(answer, inventory, time)
                if outcome.error is not None and outcome.error.is_passing:
                    self._give_up(answer, outcome, time)
                    return
            answer.set(row, outcome)
            del answer.stale[row]

    def _give_up(self, answer: DeviceAnswer, outcome: SearchOutcome, time: SearchTime) -> None:
        """The attempt fails. If nothing is found out any more, the next one would, too, unless rows change.

        Otherwise what is known helps the next attempt: it goes on with rows that are stale.
        """
        rows = tuple(answer.stale)
        answer.set_all(rows, outcome)
        if answer.size > BYTES_KEPT:
            self.kept.note_verdict(answer.key, answer.position, outcome)
        elif not time.is_in_vain:
            answer.stale.update(dict.fromkeys(rows))

    def _outcome(self, answer: DeviceAnswer, inventory: Inventory, time: SearchTime) -> SearchOutcome:
        use = inventory.use(self.ledger)
        key = (answer.demand.likeness.view(inventory).shape, use)
        outcome = answer.known.get(key)
        if outcome is None:
            try:
                solution = self._search(answer, inventory, use, key, time)
                if solution is not None:
                    check_nodes(solution, inventory)
                outcome = SearchOutcome(solution, has_invalid_pools=inventory.has_invalid_pools)
            except AllocationError as error:
                outcome = SearchOutcome(error=error.with_traceback(None))
                if error.is_passing:
                    return outcome
            answer.learn(key, outcome, _OUTCOMES_KEPT)
            time.fruitless = 0
        return outcome

    def _search(
        self, answer: DeviceAnswer, inventory: Inventory, use: DeviceUse, key: Hashable, time: SearchTime
    ) -> FoundDevices | None:
        interrupted_at, path = answer.path
        search = Search(answer.demand, inventory, use, time, path if interrupted_at == key else ())
        try:
            return search.run()
        except TurnOverError:
            answer.path = key, search.path
            raise

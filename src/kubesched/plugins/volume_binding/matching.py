"""For one claim, on all rows at once: the smallest free volume that can be reached from there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.api.storage import PersistentVolumeClaim
from kubesched.framework.nodes import Nodes
from kubesched.plugins.volume_binding.offers import Offer, Offers
from kubesched.plugins.volume_binding.reach import Reach, within
from kubesched.state.columns import ABSENT, Bool, Int64

NO_VOLUME = -1
"""Stands for "none" in a column of serial numbers of offers."""


def best_offers(claim: PersistentVolumeClaim, offers: Offers, nodes: Nodes, taken: Sequence[Int64]) -> Int64:
    """Per row the serial number of the volume to bind. `taken` is what other claims of the pod get on each row.

    A volume promised to the claim is the only one it can have, be it within reach or not.
    """
    chosen = np.full(len(nodes), NO_VOLUME, dtype=np.int64)
    undecided = ~nodes.none()
    for offer in offers.promised_to(claim):
        open_here = undecided & ~_is_taken(offer.serial, taken, nodes)
        chosen[open_here & within(nodes, offer.reach)] = offer.serial
        undecided &= ~open_here
    if undecided.any():
        free = _smallest_within_reach(offers.for_claim(claim), nodes, taken)
        chosen[undecided] = free[undecided]
    return chosen


def _smallest_within_reach(candidates: list[Offer], nodes: Nodes, taken: Sequence[Int64]) -> Int64:
    """Candidates come smallest first, so the choice on a row is the lowest rank that is within reach and not taken.

    Volumes with the same reach are in each other's shadow: since other claims take one volume each, no more of them
    than that, plus one, can ever be chosen. Local volumes, each listing one host, are looked up by label value.
    """
    nobody = len(candidates)
    serials = np.array([*(offer.serial for offer in candidates), NO_VOLUME], dtype=np.int64)
    depth = len(taken) + 1
    by_value: dict[str, dict[str, list[int]]] = {}
    by_reach: dict[Reach | None, list[int]] = {}
    for rank, offer in enumerate(candidates):
        if offer.listed is None:
            by_reach.setdefault(offer.reach, []).append(rank)
        else:
            ranks_by_value = by_value.setdefault(offer.listed.key, {})
            for value in offer.listed.values:
                ranks_by_value.setdefault(value, []).append(rank)
    best = np.full(len(nodes), nobody, dtype=np.int64)
    for reach, ranks in by_reach.items():
        reachable = within(nodes, reach)
        for rank in ranks[:depth]:
            open_here = reachable & ~_is_taken(candidates[rank].serial, taken, nodes)
            best[open_here] = np.minimum(best[open_here], rank)
    for key, ranks_by_value in by_value.items():
        for level in range(depth):
            ranks_here = _ranks(key, ranks_by_value, level, nobody, nodes)
            for other in taken:
                ranks_here[serials[ranks_here] == other] = nobody
            np.minimum(best, ranks_here, out=best)
    return serials[best]


def _ranks(key: str, ranks_by_value: dict[str, list[int]], level: int, nobody: int, nodes: Nodes) -> Int64:
    """Per row the rank, at this depth, of a volume that lists the row's value of a label."""
    values = nodes.state.nodes.label(key).values
    table = np.full(len(values) + 1, nobody, dtype=np.int64)
    for value, ranks in ranks_by_value.items():
        value_id = values.id_of(value)
        if value_id != ABSENT and level < len(ranks):
            table[value_id] = ranks[level]
    return table[nodes.label_ids(key)]


def _is_taken(serial: int, taken: Sequence[Int64], nodes: Nodes) -> Bool:
    found = nodes.none()
    for other in taken:
        found |= other == serial
    return found

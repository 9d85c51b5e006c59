"""For one claim, on all rows at once: the smallest free volume that can be reached from there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.nodes import Nodes
from kubesched.plugins.volume_binding.offers import ClaimRequest, FreeVolumes, Offer, VolumeOffers
from kubesched.plugins.volume_binding.reach import Reach, within
from kubesched.state.columns import ABSENT, Bool, Int64

NO_VOLUME = -1
"""Stands for "none" in a column of serial numbers of offers."""


def best_offers(request: ClaimRequest, offers: VolumeOffers, nodes: Nodes, taken: Sequence[Int64]) -> Int64:
    """Per row the serial number of the volume to bind. `taken` is what other claims of the pod get on each row.

    A volume reserved for the claim is the only one it can have, be it within reach or not.
    """
    chosen = np.full(len(nodes), NO_VOLUME, dtype=np.int64)
    undecided = ~nodes.none()
    for offer in offers.reserved_for(request):
        open_here = undecided & ~_is_taken(offer, taken, nodes)
        chosen[open_here & within(nodes, offer.reach)] = offer.serial
        undecided &= ~open_here
    if undecided.any():
        smallest = _smallest_within_reach(request, offers.free_volumes(request), nodes, taken)
        chosen[undecided] = smallest[undecided]
    return chosen


def _smallest_within_reach(request: ClaimRequest, free: FreeVolumes, nodes: Nodes, taken: Sequence[Int64]) -> Int64:
    """Other claims of the pod take one volume each, so of volumes with the same reach, that many and one suffice."""
    depth = len(taken) + 1
    by_label = {label: _offers_by_value(request, free, label, nodes, depth) for label in free.by_label}
    by_reach: dict[Reach | None, list[Offer]] = {}
    for offer in free.others:
        if len(by_reach.get(offer.reach, ())) < depth and request.picks(offer):
            by_reach.setdefault(offer.reach, []).append(offer)
    of_labels = (offers for by_value in by_label.values() for offers in by_value.values())
    candidates = {offer.serial: offer for offers in (*of_labels, *by_reach.values()) for offer in offers}
    ranked = sorted(candidates.values(), key=lambda offer: offer.order)
    rank_of = {offer.serial: rank for rank, offer in enumerate(ranked)}
    serials = np.array([*(offer.serial for offer in ranked), NO_VOLUME], dtype=np.int64)

    best = np.full(len(nodes), len(ranked), dtype=np.int64)
    for reach, offers in by_reach.items():
        reachable = within(nodes, reach)
        for offer in offers:
            open_here = reachable & ~_is_taken(offer, taken, nodes)
            best[open_here] = np.minimum(best[open_here], rank_of[offer.serial])
    for label, by_value in by_label.items():
        ids = nodes.label_ids(label)
        for level in range(depth):
            # The last place is that of an absent label, whose id is -1.
            rank_of_value = np.full(len(nodes.state.nodes.label(label).values) + 1, len(ranked), dtype=np.int64)
            for value_id, offers in by_value.items():
                if level < len(offers):
                    rank_of_value[value_id] = rank_of[offers[level].serial]
            ranks = rank_of_value[ids]
            for other in taken:
                ranks[serials[ranks] == other] = len(ranked)
            np.minimum(best, ranks, out=best)
    return serials[best]


def _offers_by_value(
    request: ClaimRequest, free: FreeVolumes, label: str, nodes: Nodes, depth: int
) -> dict[int, list[Offer]]:
    """By the id of each value that a label has in this view, the smallest volumes that list the value."""
    values = nodes.state.nodes.label(label).values.values
    offers_by_id: dict[int, list[Offer]] = {}
    for value_id in np.unique(nodes.label_ids(label)).tolist():
        value = values[value_id] if value_id != ABSENT else None
        offers = free.by_label[label].get(value) if value is not None else None
        if offers:
            offers_by_id[value_id] = request.first(offers, depth)
    return offers_by_id


def _is_taken(offer: Offer, taken: Sequence[Int64], nodes: Nodes) -> Bool:
    is_taken = nodes.none()
    for other in taken:
        is_taken |= other == offer.serial
    return is_taken

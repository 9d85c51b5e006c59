"""Scores: nodes where requests get an earlier one of their alternatives are better."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.device_claims import ResourceClaim
from kubesched.plugins.shared.devices.search import BEST_ALTERNATIVE


def score_of_allocated(claims: Iterable[ResourceClaim]) -> int:
    """What claims that have their devices already add to the score of every node."""
    score = 0
    for claim in claims:
        if claim.status.allocation is None:
            continue
        given = {device.request for device in claim.status.allocation.devices.results}
        for request in claim.spec.devices.requests:
            for position, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in given:
                    score += BEST_ALTERNATIVE - position
    return score

"""What a shadow found over days, summed up: how far two schedulers agree, and why they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.scheduler.shadow_ledger import Counts, ShadowLedger

AGREEING = ("same", "tie")


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """Agreement of two schedulers over the time of a ledger."""

    since: str
    until: str
    pods: int
    agreeing: float
    """The share of pods on the same node, or on one that is equally good here."""
    judgements: dict[str, int]
    causes: dict[str, int]
    """How many pods differ for what, the most first; `plugins` and `workloads` likewise."""
    plugins: dict[str, int]
    workloads: dict[str, int]
    days: dict[str, Counts]
    """Judgements by day, in UTC, of the last month."""
    examples: tuple[dict[str, Any], ...]
    """The latest pods that differ."""


def report_of(ledger: ShadowLedger) -> ShadowReport:
    counts = ledger.counts
    pods, agreed = sum(counts.values()), sum(counts.get(judgement, 0) for judgement in AGREEING)
    days: dict[str, Counter[str]] = {}
    for hour, counts_of_hour in sorted(ledger.hours.items(), key=lambda item: int(item[0])):
        days.setdefault(_at(float(hour))[:10], Counter()).update(counts_of_hour)
    return ShadowReport(
        _at(ledger.since),
        _at(ledger.until),
        pods,
        round(agreed / pods, 4) if pods else 1.0,
        counts,
        _differing(ledger.causes),
        _differing(ledger.plugins),
        _differing(ledger.workloads),
        dict(days),
        tuple(map(msgspec.to_builtins, reversed(ledger.examples))),
    )


def _at(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}" if seconds else ""


def _differing(counted: Mapping[str, Counts]) -> dict[str, int]:
    totals = {
        name: sum(count for judgement, count in counts.items() if judgement not in AGREEING)
        for name, counts in counted.items()
    }
    return dict(sorted(((n, count) for n, count in totals.items() if count), key=lambda item: (-item[1], item[0])))

"""Shadow mode for the page: how often two schedulers agree, and where they do not, by cause and with both sides."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from math import ceil

from kubesched.daemon.shadow import AGREEING, SPAN, Judgement, Shadow, ShadowComparison

_POINTS = 60
_SHOWN = 50

JUDGEMENTS: tuple[Judgement, ...] = ("same", "tie", "lower", "rejected", "no-node", "error")


@dataclass(frozen=True, slots=True)
class ShadowCause:
    """Differences that have the same cause."""

    id: str
    judgement: str
    title: str
    pods: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShadowDifference:
    """One pod on which the two do not agree, with how both nodes stand here."""

    comparison: ShadowComparison
    ago_seconds: float


@dataclass(frozen=True, slots=True)
class ShadowView:
    """All of it, and the latest pods of one cause, or of all."""

    now: float
    pods: int
    agreeing: int
    judgements: tuple[tuple[str, int], ...]
    """How many pods of each judgement, the agreeing first."""
    over_time: tuple[tuple[float, int, int], ...]
    """Times, pods that agree, pods that differ; since the time before."""
    span_seconds: float
    """From one of those times to the next."""
    causes: tuple[ShadowCause, ...]
    """The most frequent first."""
    differences: tuple[ShadowDifference, ...]
    """The latest first."""


class ShadowModel:
    """Reads what a shadow has noted."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def view(self, cause: str = "") -> ShadowView:
        """`cause` is the id of the one whose pods are wanted; empty for all."""
        shadow, now = self._shadow, self._shadow.now()
        latest = (pod for pod in reversed(shadow.differing) if pod.their_node is not None)
        differing = (pod for pod in latest if not cause or _id(pod.judgement, pod.cause) == cause)
        shown = (ShadowDifference(pod, round(max(now - pod.at, 0.0), 1)) for pod in islice(differing, _SHOWN))
        return ShadowView(
            now=now,
            pods=shadow.counts.total(),
            agreeing=sum(shadow.counts[judgement] for judgement in AGREEING),
            judgements=tuple((judgement, shadow.counts[judgement]) for judgement in JUDGEMENTS),
            over_time=self._over_time(),
            span_seconds=self._span(),
            causes=self._causes(),
            differences=tuple(shown),
        )

    def _over_time(self) -> tuple[tuple[float, int, int], ...]:
        """As many points as a chart can show, over the time since the first judgement."""
        spans = self._shadow.spans
        if not spans:
            return ()
        first, now, width = spans[0][0], self._shadow.now(), self._span()
        points = int((now - first) / width) + 1
        agreeing, differing = Counter[int](), Counter[int]()
        for begin, counts in spans:
            point = min(int((begin - first) / width), points - 1)
            agrees = sum(counts[judgement] for judgement in AGREEING)
            agreeing[point] += agrees
            differing[point] += counts.total() - agrees
        return tuple((first + width * (i + 1), agreeing[i], differing[i]) for i in range(points))

    def _span(self) -> float:
        """Whole multiples of the spans in which judgements are counted."""
        spans = self._shadow.spans
        return SPAN * max(ceil((self._shadow.now() - spans[0][0]) / _POINTS / SPAN), 1) if spans else SPAN

    def _causes(self) -> tuple[ShadowCause, ...]:
        examples: dict[tuple[str, str], list[str]] = {}
        for pod in reversed(self._shadow.differing):
            examples.setdefault((pod.judgement, pod.cause), []).append(pod.pod)
        return tuple(
            ShadowCause(_id(*key), key[0], key[1], count, tuple(examples.get(key, ())[:3]))
            for key, count in self._shadow.causes.most_common()
        )


def _id(judgement: str, cause: str) -> str:
    return f"{zlib.crc32(f'{judgement} {cause}'.encode()):08x}"

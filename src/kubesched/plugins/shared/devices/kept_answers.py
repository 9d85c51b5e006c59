"""The cache of answers about devices, with one limit of bytes for all of it."""

from __future__ import annotations

import weakref
from collections.abc import Hashable

from kubesched.plugins.shared.devices.device_answer import DeviceAnswer, SearchOutcome
from kubesched.state.facts import PodFacts, StateKey

BYTES_KEPT = 8 << 20
_VERDICTS_KEPT = 256

_LARGE = StateKey[DeviceAnswer]("an answer about devices that is too large to be kept")


class KeptAnswers:
    """Answers, the least recently used forgotten first, with the expressions and numbers that only they hold on to.

    One that is larger than the limit is held by the facts of the pod that it is for, until it is finished: it goes when
    the pod does. There is one such answer at a time.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[DeviceAnswer, int]] = {}
        self._large: weakref.ref[DeviceAnswer] | None = None
        self._verdicts: dict[Hashable, tuple[int, SearchOutcome]] = {}
        """By key: the position at which a large answer was given up, and how."""

    def get(self, key: Hashable, facts: PodFacts | None) -> DeviceAnswer | None:
        kept = self._kept.get(key)
        if kept is not None:
            return kept[0]
        large = None if facts is None else facts.find(_LARGE)
        return large if large is not None and large.key == key else None

    def may_begin(self, size: int) -> bool:
        """Whether there is room for another answer of at least so many bytes: a large one waits for the one before."""
        large = None if self._large is None else self._large()
        return size <= BYTES_KEPT or large is None

    def put(self, answer: DeviceAnswer, facts: PodFacts | None) -> None:
        """Keep an answer after a turn: it is finished, or goes on from here in the next."""
        self._kept.pop(answer.key, None)
        shared = answer.demand.likeness.size
        if answer.size + shared > BYTES_KEPT:
            answer.shrink()
        if answer.size + shared <= BYTES_KEPT:
            self._kept[answer.key] = answer, answer.size
            while self.bytes_kept > BYTES_KEPT:
                del self._kept[next(iter(self._kept))]
        is_large = answer.key not in self._kept and not answer.is_finished
        if is_large:
            self._large = weakref.ref(answer)
        elif self._large is not None and self._large() is answer:
            self._large = None
        if facts is not None and (is_large or facts.find(_LARGE) is not None):
            facts.keep(_LARGE, answer if is_large else None)

    @property
    def bytes_kept(self) -> int:
        """About; with what several of the answers share, once."""
        shared = {answer.demand.likeness for answer, _ in self._kept.values()}
        return sum(size for _, size in self._kept.values()) + sum(likeness.size for likeness in shared)

    # -- given up -----------------------------------------------------------------------------------------------------

    def note_verdict(self, key: Hashable, position: int, outcome: SearchOutcome) -> None:
        """An answer that cannot be kept was given up: that much is known until devices or their use change."""
        self._verdicts.pop(key, None)
        self._verdicts[key] = position, outcome
        if len(self._verdicts) > _VERDICTS_KEPT:
            del self._verdicts[next(iter(self._verdicts))]

    def verdict(self, key: Hashable, position: int) -> SearchOutcome | None:
        given_up = self._verdicts.get(key)
        return given_up[1] if given_up is not None and given_up[0] == position else None

"""What the server fills in: times, uids, generated names."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kubesched.api.kinds import Object

# No vowels and no look-alikes, so that no generated name is a word.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_BASE = 63 - _SUFFIX_LENGTH


class Stamps:
    """A clock and a source of randomness, both passed in."""

    def __init__(self, clock: Callable[[], float] = time.time, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._second = -1
        self._text = ""

    def time(self) -> float:
        return self._clock()

    def now(self) -> str:
        """The time as objects carry it, in whole seconds."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._text = second, timestamp(second)
        return self._text

    def uid(self) -> str:
        digits = f"{self._rng.getrandbits(128):032x}"
        # Version 4, variant 1, as uuid.UUID would set them at three times the price.
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def name(self, base: str) -> str:
        """A name that begins like this and is most likely free."""
        return base[:_LONGEST_BASE] + "".join(self._rng.choices(_ALPHABET, k=_SUFFIX_LENGTH))


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """As leases carry it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def identity(stamps: Stamps, metadata: Object, namespace: str) -> Object:
    """The metadata of a new object: fields that only the server sets replace what the client sent."""
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_SIDE}
    if namespace:
        kept["namespace"] = namespace
    kept["uid"] = stamps.uid()
    kept["creationTimestamp"] = stamps.now()
    return kept


_SERVER_SIDE = frozenset(
    ("uid", "creationTimestamp", "resourceVersion", "generation", "selfLink", "deletionTimestamp",
     "deletionGracePeriodSeconds", "namespace")
)  # fmt: skip

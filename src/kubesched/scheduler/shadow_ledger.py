"""The judgements of shadow mode over days, in a small file that outlives its process: by hour, cause and workload."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kubesched.api.errors import UserError

API_VERSION, KIND = "kubesched.dev/v1alpha1", "ShadowLedger"
HOUR = 3600
MOST_HOURS = 24 * 31
MOST_NAMES = 500
MOST_EXAMPLES = 50
OTHERS = "others"
Counts = dict[str, int]


class LedgerError(UserError):
    """A file that is no ledger, or none that can be read or written."""


class DifferingPod(msgspec.Struct, frozen=True, rename="camel"):
    """One pod on which the two schedulers did not agree."""

    at: float
    pod: str
    judgement: str
    theirs: str
    ours: str
    why: str


class ShadowLedger(msgspec.Struct, rename="camel"):
    """Counts judgements by hour and workload, and those that differ also by cause and plugin."""

    api_version: str = API_VERSION
    kind: str = KIND
    since: float = 0.0
    """Seconds since 1970; 0 before the first judgement."""
    until: float = 0.0
    counts: Counts = {}
    """By judgement, since the beginning, as are all but the hours."""
    hours: dict[str, Counts] = {}
    """The latest, by the beginning of the hour, in seconds since 1970."""
    causes: dict[str, Counts] = {}
    """By cause, then by judgement; those of `plugins` and `workloads` likewise."""
    plugins: dict[str, Counts] = {}
    workloads: dict[str, Counts] = {}
    examples: list[DifferingPod] = []
    """The latest."""

    def add(self, example: DifferingPod, *, agrees: bool, cause: str, plugin: str, workload: str) -> None:
        """Count a judgement."""
        self.since, self.until = self.since or example.at, max(self.until, example.at)
        self.counts[example.judgement] = self.counts.get(example.judgement, 0) + 1
        hour = str(int(example.at // HOUR) * HOUR)
        _count(self.hours, hour, example.judgement)
        while len(self.hours) > MOST_HOURS:
            del self.hours[min(self.hours, key=int)]
        _count(self.workloads, _name_or_others(self.workloads, workload), example.judgement)
        if agrees:
            return
        _count(self.causes, _name_or_others(self.causes, cause or example.why), example.judgement)
        _count(self.plugins, _name_or_others(self.plugins, plugin or OTHERS), example.judgement)
        self.examples = [*self.examples, example][-MOST_EXAMPLES:]


def _name_or_others(names: Iterable[str], name: str) -> str:
    names = set(names)
    return name if name in names or len(names) < MOST_NAMES else OTHERS


def _count(counts: dict[str, Counts], name: str, judgement: str) -> None:
    by_judgement = counts.setdefault(name, {})
    by_judgement[judgement] = by_judgement.get(judgement, 0) + 1


def read_ledger(text: str | bytes, source: str) -> ShadowLedger:
    """Raises LedgerError."""
    try:
        ledger = msgspec.json.decode(text, type=ShadowLedger)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LedgerError(f"{source}: {error}") from None
    if (ledger.api_version, ledger.kind) != (API_VERSION, KIND):
        raise LedgerError(f"{source}: expected a {KIND} of {API_VERSION}")
    return ledger


def load_ledger(file: str) -> ShadowLedger:
    """The ledger of an earlier process, else an empty one. Raises LedgerError if the file is no ledger."""
    try:
        text = Path(file).read_bytes()
    except FileNotFoundError:
        return ShadowLedger()
    except OSError as error:
        raise LedgerError(f"{file}: {error.strerror}") from None
    return read_ledger(text, file)


def write_ledger(encoded: bytes, file: str) -> None:
    """Whole or not at all. Raises LedgerError."""
    partial = f"{file}.partial"
    try:
        Path(partial).write_bytes(encoded)
        os.replace(partial, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise LedgerError(f"{file}: {error.strerror or error}") from None

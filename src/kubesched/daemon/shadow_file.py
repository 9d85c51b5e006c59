"""Keeps what a shadow found in the file of --shadow-file, from one process to the next."""

from __future__ import annotations

import asyncio

import msgspec

from kubesched.daemon.log import Log
from kubesched.daemon.shadow import ShadowComparison
from kubesched.scheduler.shadow_ledger import DifferingPod, LedgerError, load_ledger, write_ledger

EVERY = 30.0
"""Seconds between writes: so much may be lost with a process that is killed."""

log = Log(__name__)


class ShadowFile:
    """A ledger and its file. LedgerError if the file holds no ledger."""

    def __init__(self, file: str) -> None:
        self.ledger = load_ledger(file)
        self._file = file
        self._is_saved = True

    def note(self, comparison: ShadowComparison) -> None:
        """Count a comparison."""
        pod = msgspec.convert(comparison, DifferingPod, from_attributes=True)
        self.ledger.add(
            pod,
            agrees=comparison.agrees,
            cause=comparison.cause,
            plugin=comparison.plugin,
            workload=comparison.workload,
        )
        self._is_saved = False

    async def run(self) -> None:
        """Write now and then, for ever; the file is small, but its disk may be slow."""
        while True:
            await asyncio.sleep(EVERY)
            await self.save()

    async def save(self) -> None:
        """Write the ledger if it has changed. If it cannot be written, that is logged, and tried again."""
        if self._is_saved:
            return
        encoded = msgspec.json.encode(self.ledger)
        self._is_saved = True
        try:
            await asyncio.to_thread(write_ledger, encoded, self._file)
        except LedgerError as error:
            self._is_saved = False
            log.error("Could not write what the shadow found", error=str(error))

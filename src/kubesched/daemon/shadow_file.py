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
    """A ledger and its file. LedgerError if the file is something else."""

    def __init__(self, file: str) -> None:
        self.ledger = load_ledger(file)
        self._file = file
        self._is_saved = True

    def note(self, found: ShadowComparison) -> None:
        """Count a comparison."""
        pod = DifferingPod(found.at, found.pod, found.judgement, found.theirs, found.ours, found.why)
        self.ledger.add(pod, agrees=found.agrees, cause=found.cause, plugin=found.plugin, workload=found.workload)
        self._is_saved = False

    async def run(self) -> None:
        """Write now and then, for ever; the file is small, but its disk may be slow."""
        while True:
            await asyncio.sleep(EVERY)
            await self.save()

    async def save(self) -> None:
        """Write what has not been written. One that cannot be written is logged, and tried again."""
        if self._is_saved:
            return
        encoded = msgspec.json.encode(self.ledger)
        self._is_saved = True
        try:
            await asyncio.to_thread(write_ledger, encoded, self._file)
        except LedgerError as error:
            self._is_saved = False
            log.error("Could not write what the shadow found", error=str(error))

"""What `bench` measures of processes."""

from __future__ import annotations

import subprocess
import sys

from bench.processes import Process

_BUSY = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"


def test_cpu_of_others_is_that_of_all_whom_we_started_but_one() -> None:
    def started(program: str) -> Process:
        command = [sys.executable, "-c", program]
        return Process(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    with started("print(flush=True)\ninput()") as idle, started(_BUSY) as busy:
        for each in (idle, busy):
            assert each.process.stdout is not None
            each.process.stdout.readline()
        assert idle.cpu_seconds_of_others() - busy.cpu_seconds_of_others() > 0.3

"""`python -m soak.chaos`: one scheduler, and everything around it fails at once; it must live, and lose nothing.

Two API servers behind one address die without a word, in turns, so that one is always there. Certificates of both sides
are replaced every few seconds, the client's in two steps. The disk under the recording is full. Objects with spoilt
fields come over the watches. 300 strangers hold slow connections to the secure port.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.processes import ApiServer, SchedulerProcess, wait_for

from soak.replicas import broken_lines
from soak.slow_clients import SlowClients
from soak.verdict import Claim, Sample, memory_is_flat

_FLAGS = ("--logging-format", "json", "-v", "2", "--record", "/dev/full")
_OPEN = ("--authorization-always-allow-paths", "/livez,/metrics")
_PATIENT = "leaderElection: {leaseDuration: 45s, renewDeadline: 30s, retryPeriod: 2s}\n"
"""For a machine that is busy with other things, such as tests: it is only the faults that a lease may be lost to."""
_SETTLES_WITHIN = 300.0
_EVERY = 1.0
_REPORT_EVERY = 30
_EXPECTED = (
    "an object, it is skipped",
    "the object is skipped",
    "The recording ends here",
)
"""Errors that chaos is meant to cause, in the words of the log."""


def main(seconds: float, seed: int, *, is_patient: bool = False) -> int:
    """The exit code. Leases have their default times unless the machine is said to need patience."""
    directory = Path(tempfile.mkdtemp(prefix="kubesched-chaos-"))
    print(f"chaos for {seconds:.0f} s with seed {seed}; logs in {directory}", flush=True)
    argument = json.dumps({"seed": seed, "directory": str(directory)})
    with ApiServer(argument, "soak.chaos_cluster") as cluster:
        scheduler = SchedulerProcess(
            "",
            directory,
            name="chaos",
            settings=_PATIENT if is_patient else "",
            access=directory / "kubeconfig",
            flags=(*_FLAGS, *_OPEN),
        )
        with scheduler:
            scheduler.wait_until_ready()
            strangers = SlowClients(scheduler.port)
            strangers.start()
            try:
                claims = _lived_through(cluster, scheduler, seconds)
            finally:
                strangers.stop()
            code = scheduler.end()
    claims += _about_strangers(strangers)
    claims.append(Claim("the process lived to the end, and ended when asked to", code == 0, f"exit code {code}"))
    lines = broken_lines(scheduler.log, _EXPECTED)
    claims.append(Claim("no traceback in the log but of odd objects", not lines, "; ".join(lines[:3])))
    for claim in claims:
        print(f"{'ok  ' if claim.holds else 'FAIL'} {claim.what}{claim.detail and ': ' + claim.detail}")
    if all(claim.holds for claim in claims):
        shutil.rmtree(directory)
        return 0
    return 1


def _lived_through(cluster: ApiServer, scheduler: SchedulerProcess, seconds: float) -> list[Claim]:
    samples: list[Sample] = []
    cluster.ask("begin")
    started = time.monotonic()
    while (now := time.monotonic() - started) < seconds and scheduler.is_alive:
        samples.append(Sample(now, scheduler.rss_mb()))
        if len(samples) % _REPORT_EVERY == 0:
            print(f"{now:5.0f} s: {samples[-1].rss_mb:.0f} MB", flush=True)
        time.sleep(_EVERY)
    cluster.ask("rest")
    claims = [_settled(cluster, scheduler)]
    end = cluster.ask("tell")
    print(
        f"{end['bound']} pods bound, {end['deaths']} deaths of an API server, {end['rotations']} new certificates, "
        f"{end['odd objects']} odd objects, memory {samples[0].rss_mb:.0f} to {samples[-1].rss_mb:.0f} MB"
    )
    log = scheduler.log.read_text()
    losses = log.count("Leaderelection lost") + log.count("Failed to renew lease")
    claims.append(Claim("no pod bound twice, no node overcommitted", not end["fouls"], "; ".join(end["fouls"][:3])))
    claims.append(Claim("the lease was never lost", losses == 0))
    claims.append(memory_is_flat(samples))
    skipped = log.count("it is skipped") + log.count("the object is skipped")
    claims.append(Claim("odd objects arrived, and were skipped", skipped > 0, f"{skipped} times"))
    claims.append(Claim("the full disk ended the recording", "The recording ends here" in log))
    return claims


def _about_strangers(strangers: SlowClients) -> list[Claim]:
    failures = strangers.failures
    print(f"{strangers.opened} slow connections, {strangers.probes} probes beside them, {len(failures)} in vain")
    return [Claim("/livez was reachable all the time", not failures and strangers.probes > 0, "; ".join(failures[:3]))]


def _settled(cluster: ApiServer, scheduler: SchedulerProcess) -> Claim:
    what = "everything settles once the faults are over"
    started = time.monotonic()

    def is_settled() -> bool:
        state = cluster.ask("tell")
        return not scheduler.is_alive or not (state["waiting"] or state["leaving"])

    try:
        wait_for(is_settled, _SETTLES_WITHIN, what, every=1.0)
    except TimeoutError:
        return Claim(what, False, str({k: v for k, v in cluster.ask("tell").items() if k != "fouls"}))
    return Claim(what, scheduler.is_alive, f"after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m soak.chaos")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--patient", action="store_true", help="leases of 45 s: the machine has other things to do")
    given = parser.parse_args()
    sys.exit(main(given.seconds, given.seed, is_patient=given.patient))

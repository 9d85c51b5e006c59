"""`make soak`: an hour of churn and misfortune with two replicas, of which one is killed again and again.

In the first two thirds of the time whoever leads is killed now and then; in the last third nobody is, and the memory
of the leader is measured. Then the faults end, everything settles, and what must hold is checked.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.processes import ApiServer, wait_for

from soak.misfortune import Misfortune
from soak.replicas import Replica
from soak.verdict import Claim, Sample, belief_is_truth, memory_is_flat

_KILLS = 12
_SHORTEST_LIFE = 25.0
_EVERY = 0.5
_SETTLES_WITHIN = 300.0
"""A watch that froze is noticed after two minutes of silence."""


def main(seconds: float, seed: int) -> int:
    """The exit code."""
    directory = Path(tempfile.mkdtemp(prefix="kubesched-soak-"))
    print(f"soaking for {seconds:.0f} s with seed {seed}; logs in {directory}", flush=True)
    with ApiServer(str(seed), "soak.cluster") as cluster:
        replicas = [Replica(name, cluster.url, directory) for name in ("one", "two")]
        try:
            claims = _soak(cluster, replicas, seconds, random.Random(seed))
        finally:
            for replica in replicas:
                replica.stop()
    ends = [fault for replica in replicas for fault in (*replica.faults, *replica.broken_lines())]
    claims.append(Claim("every end was a kill, a lost lease or asked for; no traceback", not ends, "; ".join(ends[:3])))
    for claim in claims:
        print(f"{'ok  ' if claim.holds else 'FAIL'} {claim.what}{claim.detail and ': ' + claim.detail}")
    if all(claim.holds for claim in claims):
        shutil.rmtree(directory)
        return 0
    return 1


def _soak(cluster: ApiServer, replicas: list[Replica], seconds: float, rng: random.Random) -> list[Claim]:
    wait_for(lambda: any(replica.leads for replica in replicas), 60, "a leader")
    cluster.ask("begin")
    misfortune = Misfortune(cluster.url, random.Random(rng.random()))
    samples = _live_through(cluster, replicas, misfortune, seconds)
    misfortune.end()
    cluster.ask("rest")
    claims = [_settled(cluster, replicas)]
    truth = cluster.ask("tell the truth")
    claims += [belief_is_truth(replica.name, *replica.believes(), truth) for replica in replicas]
    end = cluster.ask("tell")
    claims.append(Claim("no pod bound twice, no node overcommitted", not end["fouls"], "; ".join(end["fouls"][:3])))
    claims.append(memory_is_flat(samples))
    kills, losses = sum(r.kills for r in replicas), sum(r.losses for r in replicas)
    claims.append(
        Claim(
            f"{end['bound']} pods bound, {kills} kills, {losses} lost leases, {misfortune.troubles} times of trouble",
            True,
        )
    )
    return claims


def _live_through(cluster: ApiServer, replicas: list[Replica], misfortune: Misfortune, seconds: float) -> list[Sample]:
    """Until the time is up. The memory of whoever has led longest without a break."""
    started = time.monotonic()
    pause = max(_SHORTEST_LIFE, seconds * 2 / 3 / _KILLS)
    next_kill, told = started + pause, started
    samples: list[Sample] = []
    led: Replica | None = None
    while (now := time.monotonic()) < started + seconds:
        for replica in replicas:
            replica.look_after()
        leader = next((replica for replica in replicas if replica.leads), None)
        if now >= misfortune.at:
            misfortune.change(now)
        if now >= next_kill and now < started + seconds * 2 / 3 and leader is not None:
            leader.kill()
            next_kill, leader = now + pause, None
        if leader is not led:
            led, samples = leader, []
        if leader is not None:
            samples.append(Sample(now - started, leader.process.rss_mb()))
        if now >= told:
            told = now + 30
            state = cluster.ask("tell")
            print(
                f"{now - started:5.0f} s: {state['pods']} pods, {state['waiting']} waiting, {state['bound']} bound, "
                f"{len(state['fouls'])} fouls, leader {_told(leader)}",
                flush=True,
            )
        time.sleep(_EVERY)
    return samples


def _told(leader: Replica | None) -> str:
    return "nobody" if leader is None else f"{leader.name} with {leader.process.rss_mb():.0f} MB"


def _settled(cluster: ApiServer, replicas: list[Replica]) -> Claim:
    """All that can be placed is, and all that should go is gone."""
    started = time.monotonic()

    def is_settled() -> bool:
        for replica in replicas:
            replica.look_after()
        state = cluster.ask("tell")
        return not state["waiting"] and not state["leaving"] and any(replica.leads for replica in replicas)

    what = "everything settles once the faults are over"
    try:
        wait_for(is_settled, _SETTLES_WITHIN, what, every=1.0)
        time.sleep(2)  # for what was written last to reach the watches
        return Claim(what, True, f"after {time.monotonic() - started:.0f} s")
    except TimeoutError:
        return Claim(what, False, str({k: v for k, v in cluster.ask("tell").items() if k != "fouls"}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m soak")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    sys.exit(main(given.seconds, given.seed))

"""`make soak`: an hour of churn and misfortune with two replicas, of which one is killed again and again.

With `--real` on a real API server, which is killed too: KUBEBUILDER_ASSETS names the folder with etcd, kube-apiserver
and kube-controller-manager.

In the first two thirds of the time the leader is killed now and then; in the last third no replica is, and the memory
of the leader is measured. Then the faults end, everything settles, and what must hold is checked.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.peer.control_plane import MissingBinaryError, binary
from bench.processes import ApiServer, wait_for

from soak.misfortune import Misfortune, RealMisfortune, SandboxMisfortune
from soak.replicas import Replica
from soak.verdict import Claim, Sample, cache_is_true, memory_is_flat

_KILLING = 2 / 3
"""The part of the time in which there are kills."""
_KILLS = 12
_SHORTEST_LIFE = 25.0
_EVERY = 0.5
_REPORT_EVERY = 30.0
_ASKED_AT_MOST = 60
_SETTLES_WITHIN = 300.0
"""A watch that froze is noticed after two minutes of silence."""
_LONGEST_END = 90.0
"""A real control plane takes its time."""


class Course:
    """What happens between the start and the end, one look at everything at a time."""

    def __init__(self, cluster: ApiServer, replicas: Sequence[Replica], misfortune: Misfortune, seconds: float) -> None:
        self._cluster, self._replicas, self._misfortune = cluster, replicas, misfortune
        self._started = time.monotonic()
        self._seconds = seconds
        self._pause = max(_SHORTEST_LIFE, seconds * _KILLING / _KILLS)
        self._next_kill = self._started + self._pause
        self._next_report = self._started
        self._led: Replica | None = None
        self.samples: list[Sample] = []
        """The memory of the present leader since it leads."""

    def run(self) -> None:
        while (now := time.monotonic()) < self._started + self._seconds:
            leader = leader_of(self._replicas)
            if now >= self._misfortune.turns.at:
                self._misfortune.change(now)
            if leader is not None and self._next_kill <= now < self._started + self._seconds * _KILLING:
                leader.kill()
                self._next_kill, leader = now + self._pause, None
            self._measure(leader, now)
            if now >= self._next_report:
                self._next_report = now + _REPORT_EVERY
                self._report(leader, now)
            time.sleep(_EVERY)

    def _measure(self, leader: Replica | None, now: float) -> None:
        if leader is not self._led:
            self._led, self.samples = leader, []
        if leader is not None:
            self.samples.append(Sample(now - self._started, leader.process.rss_mb()))

    def _report(self, leader: Replica | None, now: float) -> None:
        state = self._cluster.ask("tell")
        who = "no replica" if leader is None else f"{leader.name} with {leader.process.rss_mb():.0f} MB"
        print(
            f"{now - self._started:5.0f} s: {state['pods']} pods, {state['waiting']} waiting, {state['bound']} bound, "
            f"{len(state['fouls'])} fouls, leader {who}",
            flush=True,
        )


def leader_of(replicas: Sequence[Replica]) -> Replica | None:
    """The leader, if there is one; a replica that ended is started again."""
    for replica in replicas:
        replica.look_after()
    return next((replica for replica in replicas if replica.leads), None)


def main(seconds: float, seed: int, *, real: bool = False) -> int:
    """The exit code."""
    if real:
        try:
            for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
                binary(name)
        except MissingBinaryError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    directory = Path(tempfile.mkdtemp(prefix="kubesched-soak-"))
    print(f"soaking for {seconds:.0f} s with seed {seed}; logs in {directory}", flush=True)
    with _cluster(directory, seed, real=real) as cluster:
        access = Path(cluster.greeting["access"]) if real else None
        replicas = [Replica(name, cluster.url, directory, access) for name in ("one", "two")]
        rng = random.Random(seed)
        misfortune = RealMisfortune(cluster, rng) if real else SandboxMisfortune(cluster.url, rng)
        try:
            claims = _soaked(cluster, replicas, misfortune, seconds)
        except KeyboardInterrupt:
            print(f"interrupted; logs are in {directory}", file=sys.stderr)
            return 130
        finally:
            for replica in replicas:
                replica.stop()
            cluster.end(_LONGEST_END)
    ends = [fault for replica in replicas for fault in (*replica.faults, *replica.broken_lines())]
    claims.append(Claim("every end was a kill, a lost lease or asked for; no traceback", not ends, "; ".join(ends[:3])))
    for claim in claims:
        print(f"{'ok  ' if claim.holds else 'FAIL'} {claim.what}{claim.detail and ': ' + claim.detail}")
    if all(claim.holds for claim in claims):
        shutil.rmtree(directory)
        return 0
    return 1


def _cluster(directory: Path, seed: int, *, real: bool) -> ApiServer:
    if real:
        return ApiServer(json.dumps({"seed": seed, "directory": str(directory)}), "soak.real_cluster")
    return ApiServer(str(seed), "soak.cluster")


def _soaked(cluster: ApiServer, replicas: Sequence[Replica], misfortune: Misfortune, seconds: float) -> list[Claim]:
    """What must hold, after all that time."""
    wait_for(lambda: leader_of(replicas) is not None, 60, "a leader")
    course = Course(cluster, replicas, misfortune, seconds)
    cluster.ask("begin")
    course.run()
    misfortune.end()
    cluster.ask("rest")
    claims = [_settled(cluster, replicas)]
    claims += [_cache(cluster, replica) for replica in replicas]
    end = cluster.ask("tell")
    claims.append(Claim("no pod bound twice, no node overcommitted", not end["fouls"], "; ".join(end["fouls"][:3])))
    claims.append(memory_is_flat(course.samples))
    kills, losses = sum(replica.kills for replica in replicas), sum(replica.losses for replica in replicas)
    troubles = misfortune.turns.troubles
    print(f"{end['bound']} pods bound, {troubles} times of trouble, {kills} kills, {losses} lost leases")
    if done := end.get("done"):
        print("of the API server and of the way to it: " + ", ".join(f"{count} {what}" for what, count in done.items()))
    return claims


def _cache(cluster: ApiServer, replica: Replica) -> Claim:
    """Asked again while the truth moves: pods whose work ends are no longer counted."""
    for _ in range(_ASKED_AT_MOST):
        before = cluster.ask("tell the truth")
        cache, differences = replica.cache()
        truth = cluster.ask("tell the truth")
        if truth == before:
            return cache_is_true(replica.name, cache, differences, truth)
        time.sleep(2)
    return Claim(f"the cache of {replica.name} is true", False, "the truth did not stand still to be compared")


def _settled(cluster: ApiServer, replicas: Sequence[Replica]) -> Claim:
    """All that can be placed is, and all that should go is gone."""
    started = time.monotonic()

    def is_settled() -> bool:
        state = cluster.ask("tell")
        return leader_of(replicas) is not None and not state["waiting"] and not state["leaving"]

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
    parser.add_argument("--real", action="store_true", help="on the API server in KUBEBUILDER_ASSETS")
    given = parser.parse_args()
    sys.exit(main(given.seconds, given.seed, real=given.real))

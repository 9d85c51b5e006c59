"""`python -m soak.waiting`: random histories, after each of which no pod may wait that a fresh scheduler would bind.

Every history of a mixture happens to a scheduler in both modes, driven step by step and on its event loop; with
`--in-turn` to one of these four, another one each time. What is found is printed as the shortest history that shows it.
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections.abc import Sequence
from functools import partial

from tests.waiting_model import MIXTURES, WAYS, Step, left_waiting, random_history, smaller
from tests.waiting_world import Way


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.waiting", description=__doc__.partition("\n")[0])
    parser.add_argument("--mixture", action="append", choices=MIXTURES, help="one of the mixtures; all by default")
    parser.add_argument("--way", action="append", choices=WAYS, help="which scheduler, and how driven; all by default")
    parser.add_argument("--in-turn", action="store_true", help="each history happens in one of the ways, in turn")
    parser.add_argument("--histories", type=int, default=1000, help="how many of each mixture")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most that each mixture may take")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first history")
    parser.add_argument("--finds", type=int, default=3, help="of a mixture, after which the next begins")
    wanted = parser.parse_args()
    logging.disable(logging.CRITICAL)
    gc.freeze()
    gc.disable()  # a scheduler is a cycle of objects: it is collected while it is still in the processor's cache
    finds = 0
    for mixture in wanted.mixture or MIXTURES:
        finds += _hunt(mixture, [WAYS[name] for name in wanted.way or WAYS], wanted)
    return 1 if finds else 0


def _hunt(mixture: str, ways: Sequence[Way], wanted: argparse.Namespace) -> int:
    started, done, finds = time.monotonic(), 0, 0
    for seed in range(wanted.seed, wanted.seed + wanted.histories):
        if time.monotonic() - started > wanted.seconds or finds >= wanted.finds:
            break
        history = random_history(seed, mixture)
        done += 1
        for way in ways[seed % len(ways) :][:1] if wanted.in_turn else ways:
            left = _outcome(history, mixture, way)
            gc.collect(0)
            if left:
                finds += 1
                shortest = smaller(history, partial(_is_same, mixture, way, left))
                print(f"{mixture} {seed} {way}: {left}\n    {shortest!r}", flush=True)
                break
    print(f"{mixture}: {done} histories, {finds} finds, {time.monotonic() - started:.0f} s", flush=True)
    return finds


def _outcome(history: Sequence[Step], mixture: str, way: Way) -> list[str]:
    """Who is left waiting; what broke, if anything did."""
    try:
        return left_waiting(history, mixture, way)
    except Exception as error:
        return [f"broke: {error!r}"]


def _is_same(mixture: str, way: Way, left: list[str], part: Sequence[Step]) -> bool:
    outcome = _outcome(part, mixture, way)
    return bool(outcome) and outcome[0].startswith("broke") == left[0].startswith("broke")


if __name__ == "__main__":
    sys.exit(main())

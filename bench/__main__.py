"""Runs every benchmark, or those that are named, prints how they stand to their bars, writes bench/latest.json.

Machines are noisy in bursts, so the benchmarks take turns: each is measured once per round, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from bench import bars, clusters, loop, measure, planning
from bench.sections import ONLY_BY_NAME, SECTIONS
from bench.tables import engine_table, loop_table

ROUNDS = 7
SECTION_ROUNDS = 3
WAITING_PODS = 100_000
DIFFERENT_PODS = 3000
GATED_PODS = 10_000

EVENTS: dict[str, Callable[[loop.Waiting], float]] = {
    "node-label": loop.Waiting.node_label_changes,
    "small-node": loop.Waiting.small_node_comes,
    "other-pod-bound": loop.Waiting.other_pod_is_bound,
    "condition-written": loop.Waiting.conditions_are_written,
}

Turns = dict[tuple[str, int], Callable[[], float]]


def engine(wanted: list[str]) -> Turns:
    """Deciding alone, by kind of pod and number of nodes."""
    special: dict[str, Callable[[int], float]] = {
        "first-of-kind": measure.first_of_kind,
        "fits-nowhere": measure.fitting_nowhere,
        "fits-nowhere-again": partial(measure.fitting_nowhere, while_cluster_changes=False),
        "preemption": measure.preempting,
    }
    chosen = [name for name in bars.ENGINE_US if not wanted or name in wanted]
    return {
        (name, nodes): partial(measure.placing, name, nodes)
        if name in clusters.PLACED
        else partial(special[name], nodes)
        for nodes in bars.SIZES
        for name in chosen
    }


def loops(wanted: list[str]) -> Turns:
    """The whole loop, by kind of pod and number of nodes, or of pods beside."""
    if wanted and "loop" not in wanted:
        return {}
    small, large = bars.SIZES
    kinds = dict.fromkeys(("basic", "indexed", "spread-soft", "preferred-affinity"), small) | {"daemonset": large}
    turns: Turns = {(kind, nodes): partial(loop.binding, kind, nodes) for kind, nodes in kinds.items()}
    turns["alone", small] = partial(loop.coming_alone, small)
    return {**turns, ("beside-gated", GATED_PODS): partial(loop.beside_gated, GATED_PODS)}


def events(wanted: list[str]) -> Turns:
    """Events that help no pod, by what happens and number of waiting pods; the pods begin to wait only once."""
    if wanted and "waiting" not in wanted:
        return {}
    waiting = cache(lambda: loop.Waiting(WAITING_PODS))
    different = cache(lambda: loop.Waiting(DIFFERENT_PODS, kinds=DIFFERENT_PODS))
    turns: Turns = {
        (name, WAITING_PODS): partial(lambda event: event(waiting()), event) for name, event in EVENTS.items()
    }
    return {**turns, ("small-node-all-different", DIFFERENT_PODS): lambda: different().small_node_comes()}


def main(wanted: list[str], rounds: int | None) -> None:
    console = Console(width=110)
    groups = {"engine": engine(wanted), "loop": loops(wanted), "waiting": events(wanted)}
    turns = {(group, *key): run for group, chosen in groups.items() for key, run in chosen.items()}
    results = _in_rounds(console, turns, rounds or ROUNDS) if turns else {}
    for name, section in SECTIONS.items():
        if name in wanted or not (wanted or name in ONLY_BY_NAME):
            results |= section(console, rounds or SECTION_ROUNDS)
    path = Path(__file__).with_name("latest.json")
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print("written to bench/latest.json")


def _in_rounds(
    console: Console, turns: Mapping[tuple[str, str, int], Callable[[], float]], rounds: int
) -> dict[str, float]:
    medians = _medians(turns, rounds)
    engine = {(name, size): value for (group, name, size), value in medians.items() if group == "engine"}
    if engine:
        console.print(engine_table(engine, rounds))
    if len(engine) < len(medians):
        console.print(loop_table({key: value for key, value in medians.items() if key[0] != "engine"}))
    return {f"{group}/{name}/{size}": round(value, 1) for (group, name, size), value in medians.items()}


def _medians(
    turns: Mapping[tuple[str, str, int], Callable[[], float]], rounds: int
) -> dict[tuple[str, str, int], float]:
    samples: dict[tuple[str, str, int], list[float]] = {key: [] for key in turns}
    for _ in track(range(rounds), description="rounds", console=Console(stderr=True)):
        for key, run in turns.items():
            samples[key].append(run())
    return {key: statistics.median(values) for key, values in samples.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench")
    names = [*bars.ENGINE_US, "loop", "waiting", *SECTIONS]
    parser.add_argument("wanted", nargs="*", metavar="NAME", help=f"only these: {', '.join(names)}")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} for the tables and {SECTION_ROUNDS} for the rest")
    parser.add_argument("--traces", metavar="DIR", help="folder with the openb traces, for the section planning")
    given = parser.parse_args()
    if given.traces:
        os.environ[planning.TRACES] = given.traces
    if unknown := set(given.wanted) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    main(given.wanted, given.rounds)

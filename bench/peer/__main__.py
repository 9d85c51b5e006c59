"""Measures both schedulers in turns, on workloads of our own and of upstream: `python -m bench.peer --help`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from rich.console import Console

from bench.peer.cases import CaseError, Workload, choose, is_possible, read_workloads
from bench.peer.control_plane import MissingBinaryError, binary
from bench.peer.measurement import Result
from bench.peer.report import queue_moves, side_by_side, summary
from bench.peer.running import Settings, measure
from bench.peer.schedulers import BINDER, KUBE_SCHEDULER, KUBESCHED

OWN = Path(__file__).with_name("workloads")
USUAL = ("Waiting/*", "WaitingAllNodesScored/*", "Trickling/*", "Preempting")
USUAL_OF_UPSTREAM = (
    "SchedulingBasic/5000Nodes_10000Pods_*",
    "SchedulingDaemonset",
    "SchedulingWhileGated",
    "PreemptionBasic/1000Nodes_QueueingHintsEnabled",
    "PreemptionPVs/1000Nodes_*",
    "EventHandling*",
    "SchedulingWithResourceClaim*/5000pods_500nodes*",
    "SteadyStateClusterResourceClaimTemplate/half_500nodes_*",
    "SchedulingWithExtendedResource/5000pods_5000nodes_DRA*",
)
"""What is measured if nothing is named."""


def main(given: argparse.Namespace) -> None:
    workloads = read_workloads(OWN) + (read_workloads(given.source) if given.source else [])
    if given.list:
        _print_names(workloads)
        return
    for needed in ("etcd", "kube-apiserver", *(kind for kind in given.scheduler if kind == KUBE_SCHEDULER)):
        binary(needed)
    sizes = dict(_setting(each) for each in given.set)
    settings = Settings(given.tree, tuple(given.flag), given.timeout, given.keep)
    chosen = [
        each.scaled(given.scale).with_parameters(sizes) for name in given.wanted for each in choose(workloads, name)
    ]
    measured = [(workload, _measured(workload, given, settings)) for workload in chosen]
    if len(measured) > 1:
        Console(width=150).print(summary(measured))


def _measured(workload: Workload, given: argparse.Namespace, settings: Settings) -> dict[str, list[Result]]:
    """The schedulers take turns, so that both see the same noise."""
    results: dict[str, list[Result]] = {kind: [] for kind in given.scheduler}
    for _ in range(given.rounds):
        for kind in given.scheduler:
            result = measure(workload, kind, settings)
            results[kind].append(result)
            print(f"{workload.full_name} {kind}: {_brief(result)}", flush=True)
            if given.out is not None:
                _write(given.out, workload, kind, result, given.tree)
    console = Console(width=150)
    console.print(side_by_side(workload, results))
    if given.events:
        console.print(queue_moves(results))
    return results


def _print_names(workloads: Iterable[Workload]) -> None:
    for workload in workloads:
        if is_possible(workload):
            print(workload.full_name, *(f"{name}={value}" for name, value in workload.parameters.items()))


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, int(value) if value.isdigit() else value


def _brief(result: Result) -> str:
    return (
        f"{result.pods} pods, {result.pods_per_second:.0f}/s, {result.cpu_ms_per_pod:.3f} ms CPU/pod, "
        f"{result.attempts}, {result.rss_mb:.0f} MB, p50 {result.p50:.3f} s, p99 {result.p99:.3f} s"
        f"{f', first binding after {result.first_seconds:.1f} s' if result.first_seconds else ''}"
        f"{f' and {result.first_cpu_seconds:.1f} s of CPU' if result.first_seconds else ''}"
        f"{f', own watch cut {result.cuts} times' if result.cuts else ''}"
    )


def _write(path: Path, workload: Workload, kind: str, result: Result, tree: Path | None) -> None:
    line = {
        "workload": workload.full_name,
        "parameters": workload.parameters,
        "scheduler": kind,
        "tree": str(tree or ""),
    }
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line | msgspec.structs.asdict(result)) + b"\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description=__doc__)
    add = parser.add_argument
    add("wanted", nargs="*", metavar="CASE[/WORKLOAD]", help="wildcards allowed; a case alone is its largest workload")
    add("--source", type=Path, help="a Kubernetes source tree: its workloads can be named, too")
    add("--tree", type=Path, help="the checkout whose kubesched is measured (default: this one)")
    add("--scheduler", action="append", choices=(KUBESCHED, KUBE_SCHEDULER, BINDER), help="only this one")
    add("--rounds", type=int, default=1)
    add("--scale", type=float, default=1, help="so many times the nodes, pods and claims")
    add("--set", action="append", default=[], metavar="PARAMETER=VALUE", help="another size")
    add("--flag", action="append", default=[], help="one more flag for the schedulers: --flag=-v=5")
    add("--timeout", type=float, default=1200, help="seconds for one run")
    add("--keep", type=Path, help="a folder for logs and settings, which are thrown away otherwise")
    add("--out", type=Path, help="a file that gets a line of JSON for each run")
    add("--events", action="store_true", help="also show which events brought how many pods into which queue")
    add("--list", action="store_true", help="only name the workloads")
    given = parser.parse_args()
    given.scheduler = given.scheduler or [KUBESCHED, KUBE_SCHEDULER]
    given.wanted = given.wanted or [*USUAL, *(USUAL_OF_UPSTREAM if given.source else ())]
    return given


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts it in the background ignores it
    try:
        main(_arguments())
    except (CaseError, MissingBinaryError, TimeoutError) as error:
        sys.exit(f"bench.peer: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

"""Deciding alone, in process: kube-scheduler's algorithm (tools/algorithm, built inside its source tree) and ours.

python -m bench.peer.algorithm --source ~/kubernetes/source [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import measure

KINDS = ("basic", "all-different", "spread-soft", "spread-hard", "preferred-affinity", "required-anti-affinity")
TOOL = Path(__file__).parents[2] / "tools/algorithm"
PODS, PODS_OF_ALL_NODES = 1000, 200
_FEWEST_PODS, _NODES_LOOKED_AT = 20, 5_000_000
"""On more than 5,000 nodes there are fewer pods, since each takes longer."""
EVERY_NODE = 100
"""Percent of the nodes. We always look at all; kube-scheduler by default at 500 of 5,000."""


class BuildError(Exception):
    """Go, or the source tree, or the tree's compilation is missing."""


def build(source: Path, binary: Path) -> None:
    """Compile the tool as if its files were in the tree, which stays as it is. Raises BuildError."""
    if shutil.which("go") is None:
        raise BuildError("there is no go on the PATH")
    if not (source / "pkg/scheduler/scheduler.go").exists():
        raise BuildError(f"{source} is no Kubernetes source tree")
    places = {"decide.go": "pkg/scheduler/zz_decide.go", "main.go": "cmd/zz-algorithm/main.go"}
    overlay = binary.with_suffix(".json")
    replaced = {str(source.resolve() / place): str(TOOL / name) for name, place in places.items()}
    overlay.write_text(json.dumps({"Replace": replaced}))
    command = ["go", "build", "-mod=vendor", "-overlay", str(overlay), "-o", str(binary), "./cmd/zz-algorithm"]
    done = subprocess.run(command, cwd=source, env=os.environ | {"CGO_ENABLED": "0"}, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"go build failed:\n{done.stderr[-2000:]}")


def theirs(binary: Path, kind: str, nodes: int, percentage: int) -> float:
    """CPU microseconds per pod."""
    at_most = PODS_OF_ALL_NODES if percentage else PODS
    pods = min(at_most, max(_FEWEST_PODS, _NODES_LOOKED_AT // nodes), measure.pods_that_fit_apart(nodes))
    flags = [f"-kind={kind}", f"-nodes={nodes}", f"-pods={pods}", f"-percentage={percentage}"]
    return 1000 * float(subprocess.run([binary, *flags], capture_output=True, text=True, check=True).stdout)


def ours(kind: str, nodes: int) -> float:
    """CPU microseconds per pod."""
    return measure.first_of_kind(nodes) if kind == "all-different" else measure.placing(kind, nodes)


def main(source: Path, nodes: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "algorithm"
        build(source, binary)
        table = Table(title=f"CPU microseconds per decision, {nodes:,} nodes, median of {rounds}")
        table.add_column("pods")
        for column in ("ratio", "ratio, all nodes", "kubesched", "kube-scheduler", "kube-scheduler, all nodes"):
            table.add_column(column, justify="right")
        for kind in KINDS:
            taken: list[tuple[float, float, float]] = [
                (ours(kind, nodes), theirs(binary, kind, nodes, 0), theirs(binary, kind, nodes, EVERY_NODE))
                for _ in range(rounds)
            ]
            mine, sampled, every = (statistics.median(column) for column in zip(*taken, strict=True))
            ratios = f"{sampled / mine:,.0f}x", f"{every / mine:,.0f}x"
            table.add_row(kind, *ratios, f"{mine:,.0f}", f"{sampled:,.0f}", f"{every:,.0f}")
        Console(width=120).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.peer.algorithm", description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="a Kubernetes source tree")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        main(given.source, given.nodes, given.rounds)
    except BuildError as error:
        sys.exit(f"bench.peer.algorithm: {error}")

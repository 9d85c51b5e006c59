"""Records what kube-scheduler does with cases, by Go programs (go/) that are built inside its source tree.

python -m tools.recorder --kubernetes ~/kubernetes --tag v1.36.4 --out /tmp/recorded [CASES...]

CASES are files (JSON lines, plain or .gz) in folders named decisions, queue or config, or folders with such files;
without, those of tests/parity/golden. Lines may be cases, or recordings, of which the case is taken; then it is said
how many came out as they were recorded.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tools.recorder.building import MissingError, build, source_tree
from tools.recorder.compare import KINDS

GOLDEN = Path(__file__).parents[2] / "tests/parity/golden"


def main(arguments: argparse.Namespace) -> int:
    files = list(_files(arguments.cases or [GOLDEN / kind for kind in KINDS]))
    if not files:
        raise MissingError(
            "there are no cases: expected .jsonl or .jsonl.gz in folders named decisions, queue or config"
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    tree = source_tree(arguments.kubernetes, arguments.tag, arguments.out)
    table = Table("recording", "cases", "as recorded", "different")
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "recorder"
        build(tree, binary, {kind for kind, _ in files})
        for kind, file in files:
            name = file.name.removesuffix(".gz").removesuffix(".jsonl")
            recorded = _record(binary, kind, file, arguments.workers)
            _write(arguments.out / kind / f"{name}.jsonl.gz", recorded)
            cases, wrong = _compared(kind, file, recorded)
            table.add_row(f"{kind}/{name}", f"{len(recorded):,}", f"{cases - len(wrong):,}", f"{len(wrong):,}")
            found += [line for lines in wrong for line in lines]
    Console(width=100).print(table)
    (arguments.out / "differences.txt").write_text("".join(f"{line}\n" for line in found))
    if found:
        print(f"{len(found):,} differences from what was recorded: {arguments.out / 'differences.txt'}")
    return 0


def _files(given: list[Path]) -> Iterator[tuple[str, Path]]:
    for path in given:
        if not path.exists():
            raise MissingError(f"there is no {path}")
        inside = sorted(path.rglob("*.jsonl*")) if path.is_dir() else [path]
        for file in inside:
            if file.parent.name in KINDS:
                yield file.parent.name, file
            elif file == path:
                raise MissingError(
                    f"{file} is not in a folder named decisions, queue or config, so its kind is unknown"
                )


def _record(binary: Path, kind: str, file: Path, workers: int) -> list[bytes]:
    """Cases with the same feature gates together: kube-scheduler has one set of them."""
    lines, recorded = _read(file).splitlines(), dict[int, bytes]()
    by_gates: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        given = json.loads(line)
        by_gates.setdefault(_gates(given.get("case", given)), []).append(i)
    for gates, chosen in by_gates.items():
        command = [str(binary), "-kind", kind, "-workers", str(workers), "-feature-gates", gates]
        done = subprocess.run(command, input=b"".join(lines[i] + b"\n" for i in chosen), capture_output=True)
        if done.returncode:
            raise MissingError(f"{file}: {done.stderr.decode()[-2000:]}")
        recorded |= dict(zip(chosen, done.stdout.splitlines(), strict=True))
    return [recorded[i] for i in range(len(lines))]


def _gates(case: dict[str, Any]) -> str:
    return ",".join(f"{gate}={str(is_on).lower()}" for gate, is_on in case.get("featureGates", {}).items())


def _compared(kind: str, file: Path, recorded: list[bytes]) -> tuple[int, list[list[str]]]:
    """How many of the lines had a result before, and where the new one differs: a list for each case."""
    cases = 0
    wrong: list[list[str]] = []
    for old, new in zip(_read(file).splitlines(), recorded, strict=True):
        before = json.loads(old)
        if "result" not in before:
            continue
        cases += 1
        found = KINDS[kind].differences(json.loads(new)["result"], before["result"])
        if found:
            wrong.append([f"{before['case']['id']}: {line}" for line in found])
    return cases, wrong


def _read(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def _write(file: Path, lines: list[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines), mtime=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.recorder", description=__doc__)
    parser.add_argument("--kubernetes", type=Path, required=True, help="a source tree, or a git directory")
    parser.add_argument("--tag", default="v1.36.4", help="the release to take from a git directory")
    parser.add_argument("--out", type=Path, required=True, help="the folder that recordings are written to")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many cases at a time")
    parser.add_argument("cases", type=Path, nargs="*")
    try:
        sys.exit(main(parser.parse_args()))
    except MissingError as error:
        sys.exit(f"record: {error}")

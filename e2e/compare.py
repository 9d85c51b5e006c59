"""Two runs beside each other: what passes with kube-scheduler must pass with kubesched.

python -m e2e.compare --kube-scheduler REPORTS... --kubesched REPORTS...

REPORTS are folders that `make e2e E2E="--out FOLDER"` wrote. Of several for one scheduler, a spec counts as passed if
it passed in one: a spec that failed by a timeout is run again with `--focus`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.peer.schedulers import KUBE_SCHEDULER, KUBESCHED

from e2e.suite import REPORT, Result, Spec, specs_of


def results(folders: Sequence[Path]) -> dict[str, Spec]:
    """How each spec went in the end, by its short name."""
    found: dict[str, Spec] = {}
    for folder in folders:
        for spec in specs_of(folder / REPORT):
            known = found.get(spec.short_name)
            if known is None or known.result is not Result.PASSED:
                found[spec.short_name] = spec
    return found


def worse(peer: dict[str, Spec], ours: dict[str, Spec]) -> list[Spec]:
    """Specs that the peer passes, and kubesched does not."""
    return [
        ours.get(name, Spec(name, Result.FAILED, 0.0, "was not run"))
        for name, spec in sorted(peer.items())
        if spec.result is Result.PASSED and (name not in ours or ours[name].result is not Result.PASSED)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if kubesched fails what kube-scheduler passes, 2 if there is no report."""
    parser = argparse.ArgumentParser(prog="python -m e2e.compare", description=__doc__.partition("\n")[0])
    for scheduler in (KUBE_SCHEDULER, KUBESCHED):
        parser.add_argument(f"--{scheduler}", type=Path, nargs="+", required=True, dest=scheduler)
    folders: dict[str, list[Path]] = vars(parser.parse_args(arguments))
    for folder in (folder for given in folders.values() for folder in given):
        if not (folder / REPORT).exists():
            print(f"there is no {REPORT} in {folder}", file=sys.stderr)
            return 2
    runs = {scheduler: results(given) for scheduler, given in folders.items()}
    for scheduler, specs in runs.items():
        counts = Counter(spec.result for spec in specs.values())
        print(f"{scheduler}: " + ", ".join(f"{counts[result]} {result}" for result in Result))
        for spec in specs.values():
            if spec.result is Result.FAILED:
                print(f"    {spec.short_name}\n        {spec.reason}")
    lost = worse(runs[KUBE_SCHEDULER], runs[KUBESCHED])
    print(f"{len(lost)} pass with {KUBE_SCHEDULER} and not with {KUBESCHED}")
    for spec in lost:
        print(f"    {spec.short_name}\n        {spec.reason}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())

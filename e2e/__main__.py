"""`make e2e`: starts a control plane with hollow nodes and a scheduler, runs the suite, and prints a table of specs.

python -m e2e                                  # kubesched in charge of all specs about scheduling
python -m e2e --scheduler kube-scheduler       # the same environment, to tell its failures from the scheduler's
python -m e2e --set conformance                # conformance specs that need no running containers
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.peer.control_plane import ControlPlane, MissingBinaryError, binary
from bench.peer.schedulers import KUBE_SCHEDULER, KUBESCHED, Scheduler

from e2e.hollow_nodes import start_nodes
from e2e.specs import SETS, Choice
from e2e.suite import Result, Spec, Suite, specs_of

_NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kubemark", "kubectl", "e2e.test")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if no spec failed, 1 if some did, 2 if something is missing, 130 after Ctrl-C."""
    options = _options(arguments)
    try:
        for needed in (*_NEEDED, *([KUBE_SCHEDULER] if options.scheduler == KUBE_SCHEDULER else [])):
            binary(needed)
    except MissingBinaryError as error:
        print(f"{error}; CONTRIBUTING.md says how to build what is needed", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output = options.out or Path(tempfile.mkdtemp(prefix="kubesched-e2e-"))
    output.mkdir(parents=True, exist_ok=True)
    choice = Choice((options.focus,)) if options.focus else SETS[options.set]
    try:
        specs = run(options.scheduler, choice, options.nodes, output)
    except KeyboardInterrupt:
        print(f"interrupted: everything that was started has ended; logs are in {output}", file=sys.stderr)
        return 130
    print_table(specs, options.scheduler)
    print(f"Logs and the report are in {output}")
    return 1 if any(spec.result is Result.FAILED for spec in specs) else 0


def run(scheduler: str, choice: Choice, nodes: int, output: Path) -> list[Spec]:
    """How each of the chosen specs went. Everything that is started is ended by its own process id."""
    with ExitStack() as running:
        data = output / "control-plane"
        data.mkdir(exist_ok=True)
        plane = running.enter_context(ControlPlane(data, controllers=("*",), without_admission=()))
        running.enter_context(Scheduler(scheduler, plane)).wait_until_ready()
        start_nodes(plane, nodes, running)
        print(f"{scheduler} is in charge of {nodes} hollow nodes at {plane.access.url}", flush=True)
        suite = running.enter_context(Suite(plane, choice, output))
        _follow(suite)
        if not suite.report.exists():
            raise SystemExit(f"the suite left no report:\n{suite.log.read_text(errors='replace')[-2000:]}")
        return specs_of(suite.report)


def _follow(suite: Suite) -> None:
    """Say how far it is, a line whenever another spec has ended."""
    told = 0
    while suite.is_alive:
        time.sleep(2)
        ended = suite.ended()
        if ended != told:
            print(f"{ended} specs have ended", flush=True)
            told = ended


def print_table(specs: Sequence[Spec], scheduler: str) -> None:
    """Failures last, where they are seen."""
    for spec in sorted(specs, key=lambda spec: (spec.result is Result.FAILED, spec.result, spec.short_name)):
        print(f"{spec.result:8}{spec.seconds:7.0f} s  {spec.short_name}")
        if spec.result is Result.FAILED:
            print(f"{'':20}{spec.reason}")
    counts = Counter(spec.result for spec in specs)
    print(f"{scheduler}: " + ", ".join(f"{counts[result]} {result}" for result in Result))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e", description="Kubernetes' own end-to-end suite.")
    parser.add_argument("--scheduler", choices=(KUBESCHED, KUBE_SCHEDULER), default=KUBESCHED)
    parser.add_argument("--set", choices=tuple(SETS), default="scheduling", help="which specs (scheduling)")
    parser.add_argument("--focus", help="a regular expression instead: specs whose names match")
    parser.add_argument("--nodes", type=int, default=4, help="number of hollow nodes (4)")
    parser.add_argument("--out", type=Path, help="folder for logs and the report; a temporary one if not set")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

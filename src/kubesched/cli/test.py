"""`kubesched test`: do pods land where they have to? Cases for CI."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from kubesched.ask.answers import answer
from kubesched.ask.output import counted
from kubesched.ask.placement_tests.case import read_cases
from kubesched.ask.placement_tests.running import CaseResult, first_case, junit, results, run_case
from kubesched.cli.cluster_options import (
    TEXT,
    config_option,
    feature_gates_option,
    output_option,
    plugin_errors_reported,
    settings_of,
)
from kubesched.cli.grid import STRONG
from kubesched.cli.input import describe, refuse
from kubesched.cli.printing import BAD, FAINT, GOOD, console, paragraph, print_plain
from kubesched.config import Features, SchedulerConfiguration


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIRECTORY...")
@config_option
@feature_gates_option
@click.option("--junit", "junit_file", metavar="FILE", help="File to write the results to as JUnit XML.")
@click.option(
    "--init", "init_from", metavar="SNAPSHOT", help="Write a first case about this cluster to the file named."
)
@output_option()
def test(
    paths: tuple[str, ...],
    config_file: str | None,
    features: Features,
    junit_file: str | None,
    init_from: str | None,
    output: str,
) -> None:
    """Run placement tests: cases that say where pods have to land, and where never.

    A case is a document of kind PlacementTest: a cluster, what is put on it, and what is expected. The exit code is 0
    if all holds, 1 if something does not, 2 if a case cannot be read.
    """
    settings = settings_of(config_file, features)
    if init_from is not None:
        _write_first_case(paths, init_from, settings)
        return
    cases = read_cases(list(paths))
    out, done, seconds = console(), list[CaseResult](), dict[tuple[str, str], float]()
    with plugin_errors_reported():
        for case in cases:
            began = time.monotonic()
            result = run_case(case, settings)
            seconds[case.file, case.name] = time.monotonic() - began
            done.append(result)
            if output == TEXT:
                _print(out, result)
    summary = results(tuple(done))
    if junit_file is not None:
        _write(junit_file, junit(summary, seconds))
    if output == TEXT:
        failed = (f"{summary.failed} failed", BAD if summary.failed else FAINT)
        total = f"{counted(len(summary.cases), 'case')}: "
        paragraph(out, Text.assemble(total, (f"{summary.passed} passed", GOOD), ", ", failed))
    else:
        print_plain(answer(summary), output)
    sys.exit(1 if summary.failed else 0)


def _print(out: Console, case: CaseResult) -> None:
    mark = ("PASS", GOOD) if case.holds else ("FAIL", BAD)
    paragraph(out, Text.assemble(mark, "  ", (case.name, STRONG), (f"  {case.file}", FAINT)), rest=" " * 6)
    for check in case.checks:
        if check.holds:
            continue
        _print_indented(out, f"expected: {check.expected}", 6)
        for line in check.problems:
            _print_indented(out, line, 8, BAD)
        for line in check.explanation:
            _print_indented(out, line.lstrip(), 8 + len(line) - len(line.lstrip()), FAINT)


def _print_indented(out: Console, line: str, by: int, style: str = "") -> None:
    """What does not fit on the line goes on below its beginning."""
    paragraph(out, line, style, first=" " * by, rest=" " * by)


def _write_first_case(paths: Sequence[str], cluster: str, settings: SchedulerConfiguration) -> None:
    if len(paths) != 1:
        refuse([f"--init: expected one file to write, got {len(paths)}"])
    [file] = paths
    if Path(file).exists():
        refuse([f"{file}: there is such a file already"])
    _write(file, first_case(file, cluster, settings))
    click.echo(f"{file}: written; `kubesched test {file}` runs it", err=True)


def _write(file: str, text: str) -> None:
    try:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        refuse([describe(error, file)])

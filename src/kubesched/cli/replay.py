"""`kubesched replay`: would this scheduler decide today what it decided then?"""

from __future__ import annotations

import sys

import click

from kubesched.api.errors import located
from kubesched.ask.answers import ReplayAnswer, answer
from kubesched.ask.output import counted
from kubesched.cli.cluster_options import TEXT, output_option
from kubesched.cli.grid import Grid
from kubesched.cli.input import describe, refuse
from kubesched.cli.printing import BAD, GOOD, console, paragraph, print_plain, print_rows
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.replay import Replay, ReplayDifference, ReplayError

MOST_ROWS = 40


@click.command()
@click.argument("recording")
@output_option()
def replay(recording: str, output: str) -> None:
    """Run a recording again and compare every decision. RECORDING is a file, or - for standard input.

    Exits with 0 if all decisions are the same, with 1 if some are not.
    """
    source = "<stdin>" if recording == "-" else recording
    plugins = all_plugins()
    try:
        with located(source, ReplayError), click.open_file(recording, encoding="utf-8") as lines:
            run = Replay(lines, plugins)
            differences = run.run()
    except OSError as error:
        refuse([describe(error, source)])
    except UnicodeDecodeError:
        refuse([f"{source}: not UTF-8 text"])
    if output == TEXT:
        _print(run.decisions, differences)
    else:
        print_plain(answer(ReplayAnswer(run.decisions, tuple(differences))), output)
    if differences:
        sys.exit(1)


def _print(decisions: int, differences: list[ReplayDifference]) -> None:
    out = console()
    if not differences:
        paragraph(out, f"{counted(decisions, 'decision')} replayed, all the same", GOOD)
        return
    paragraph(out, f"{counted(decisions, 'decision')} replayed, {counted(len(differences), 'difference')}", BAD)
    rows = Grid(("Line", "Time", "What", "Recorded", "Now"), right=(0, 1))
    for difference in differences[:MOST_ROWS]:
        cells = (difference.what, str(difference.recorded), str(difference.replayed))
        rows.add(str(difference.line), f"{difference.time:g} s", *cells)
    print_rows(out, rows, len(differences) - MOST_ROWS, "-o json")

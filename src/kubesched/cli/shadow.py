"""`kubesched shadow report`: what a shadow found over days, from its file."""

from __future__ import annotations

import click
from rich.text import Text

from kubesched.ask.html import shadow_page
from kubesched.ask.output import counted, document
from kubesched.ask.shadow_report import ShadowReport, report_of
from kubesched.cli.cluster_options import output_option
from kubesched.cli.grid import Grid
from kubesched.cli.input import read
from kubesched.cli.printing import BAD, GOOD, console, note, paragraph, print_plain, print_rows
from kubesched.scheduler.shadow_ledger import read_ledger

FILE = "/var/lib/kubesched/shadow.json"
"""Where the manifests of deploy/ keep it."""
MOST_ROWS = 15


@click.group()
def shadow() -> None:
    """Tell what a shadow found: on how many pods two schedulers agree, and why they differ."""


@shadow.command()
@click.option("-f", "--filename", "file", default=FILE, show_default=True, help="That of --shadow-file; - is stdin.")
@output_option("html")
def report(file: str, output: str) -> None:
    """Sum up the file of `kubesched run --shadow --shadow-file`."""
    origin, text = read(file)
    found = report_of(read_ledger(text, origin))
    match output:
        case "json" | "yaml":
            print_plain(document("ShadowReport", found), output)
        case "html":
            click.echo(shadow_page(found), nl=False)
        case _:
            _print(found)


def _print(found: ShadowReport) -> None:
    out = console()
    note(out, f"{counted(found.pods, 'pod')} from {found.since} to {found.until} UTC")
    style = GOOD if found.agreeing == 1 else BAD
    paragraph(out, Text.assemble((f"{found.agreeing:.2%}", style), " on the same node, or on one that is equally good"))
    rows = Grid(("Judgement", "Pods"), right=(1,))
    for judgement, count in found.judgements.items():
        rows.add(judgement, str(count))
    print_rows(out, rows)
    for title, counts in (("Differs because", found.causes), ("Plugin", found.plugins), ("Workload", found.workloads)):
        if counts:
            rows = Grid((title, "Pods"), right=(1,))
            for name, count in list(counts.items())[:MOST_ROWS]:
                rows.add(name, str(count))
            print_rows(out, rows, len(counts) - MOST_ROWS)

"""`kubesched shadow report`: what a shadow found over days, from its file."""

from __future__ import annotations

import click
from rich.text import Text

from kubesched.ask.html import shadow_page
from kubesched.ask.output import counted, document
from kubesched.ask.shadow_report import ShadowReport, report_of
from kubesched.cli.cluster_options import output_option
from kubesched.cli.input import read
from kubesched.cli.printing import BAD, GOOD, console, note, paragraph, print_counts, print_plain
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
    summary = report_of(read_ledger(text, origin))
    match output:
        case "json" | "yaml":
            print_plain(document("ShadowReport", summary), output)
        case "html":
            click.echo(shadow_page(summary), nl=False)
        case _:
            _print(summary)


def _print(report: ShadowReport) -> None:
    out = console()
    note(out, f"{counted(report.pods, 'pod')} from {report.since} to {report.until} UTC")
    style = GOOD if report.agreeing == 1 else BAD
    agreeing = (f"{report.agreeing:.2%}", style)
    paragraph(out, Text.assemble(agreeing, " on the same node, or on one that is equally good"))
    print_counts(out, ("Judgement", "Pods"), report.judgements)
    counts = {"Differs because": report.causes, "Plugin": report.plugins, "Workload": report.workloads}
    for title, pods in counts.items():
        if pods:
            print_counts(out, (title, "Pods"), pods, MOST_ROWS)

"""`kubesched simulate`: what becomes of all these pods, when time passes?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import click
from rich.console import Console
from rich.text import Text

from kubesched.ask.answers import Skipped, Summary, answer
from kubesched.ask.html import simulation_page
from kubesched.ask.output import counted, first_of, listed
from kubesched.cli.cluster_options import (
    SchedulerConfig,
    config_option,
    feature_gates_option,
    output_option,
    scheduler_config,
    seed_option,
)
from kubesched.cli.cluster_source import ClusterSource, source_options
from kubesched.cli.edit_options import EditOptions, edit_options
from kubesched.cli.grid import STRONG, Grid
from kubesched.cli.input import describe, refuse
from kubesched.cli.printing import (
    BAD,
    FAINT,
    GOOD,
    bar,
    console,
    note,
    paragraph,
    print_plain,
    print_rows,
    print_skipped,
    progress_bar,
    with_bars,
)
from kubesched.config import Features
from kubesched.scheduler.recording import open_recording
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.simulate.manifests import Manifests
from kubesched.simulate.report import PodStory, Share, SimulationReport, Utilisation, figures_of, moment, title_of
from kubesched.simulate.simulation import Simulation

MOST_ROWS = 40
MOST_NODES = 20


@click.command()
@source_options
@config_option
@feature_gates_option
@seed_option
@edit_options
@output_option("html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod, even if there are more than {MOST_ROWS}.")
@click.option("--all-nodes", is_flag=True, help=f"Show every node, even if there are more than {MOST_NODES}.")
@click.option("--record", help="File to record to, for `kubesched replay`. An existing file is kept as FILE.1.")
@click.option("--record-annotations", is_flag=True, help="Record what annotations say, too; else it is masked.")
def simulate(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    edits: EditOptions,
    output: str,
    all_pods: bool,
    all_nodes: bool,
    record: str | None,
    record_annotations: bool,
) -> None:
    """Run the pods and workloads of the cluster in virtual time, to the end.

    It is the real scheduler, with backoff, preemption and retries. Deployments, ReplicaSets, StatefulSets, DaemonSets
    and Jobs are expanded to pods. The annotations kubesched.io/arrival and kubesched.io/duration, on a pod or in a
    template, set when pods arrive and how long they run.
    """
    config = scheduler_config(source, config_file, features)
    manifests = edits.edited(source, config)
    with _recording(record) as stream:
        report = run(manifests, config, seed, stream, with_annotations=record_annotations)
    match output:
        case "json" | "yaml":
            print_plain(answer(report, Summary(figures_of(report)), Skipped(manifests.skipped)), output)
        case "html":
            click.echo(simulation_page(report, configuration=config.name), nl=False)
        case _:
            out = console()
            ResultPrinter(out, report, all_pods=all_pods, all_nodes=all_nodes).print()
            print_ceilings(out, manifests, [config], [report])
            print_skipped(out, manifests.skipped)


@contextmanager
def _recording(file: str | None) -> Iterator[IO[str] | None]:
    if file is None:
        yield None
        return
    if file == "-":
        yield sys.stdout
        return
    try:
        stream = open_recording(
            file, lambda backup: click.echo(f"{file}: kept the earlier recording as {backup}", err=True)
        )
    except OSError as error:
        refuse([describe(error, file)])
    with stream:
        yield stream


def run(
    manifests: Manifests,
    config: SchedulerConfig,
    seed: int,
    record: IO[str] | None = None,
    *,
    with_annotations: bool = False,
) -> SimulationReport:
    """One simulation from beginning to end, with a progress bar; or what is wrong with the policy, and the end."""
    simulation = Simulation(
        manifests.objects, config.settings, seed=seed, record=record, with_annotations=with_annotations
    )
    try:
        with progress_bar("Simulating") as progress:
            return simulation.run(progress)
    except StillWaitingError as error:
        refuse([f"{config}: {error}"])


def print_ceilings(
    out: Console, manifests: Manifests, configs: Sequence[SchedulerConfig], reports: Sequence[SimulationReport]
) -> None:
    """How much was in use at the peak, by the best of the policies, and what none with these filters could exceed."""
    from kubesched.planning.ceiling import ceilings_of, highest, lines_beside

    if not any(report.placed for report in reports):
        return
    shares = [{name: share.peak for name, share in report.total.resources.items()} for report in reports]
    reached = {name: max(peaks.get(name, 0.0) for peaks in shares) for name in shares[0]}
    ceilings = highest(ceilings_of(manifests.objects, config.settings) for config in configs)
    for line in lines_beside(ceilings, reached):
        paragraph(out, line)


class ResultPrinter:
    """Prints one report."""

    def __init__(self, out: Console, report: SimulationReport, *, all_pods: bool, all_nodes: bool) -> None:
        self._out = out
        self._report = report
        self._most = len(report.pods) if all_pods else MOST_ROWS
        self._all_nodes = all_nodes
        self._timed = report.ended > 0

    def print(self) -> None:
        self._summary()
        if self._report.placed:
            self._placed()
        if self._report.pending:
            self._pending()
        if self._report.preemptions:
            self._preemptions()
        if self._report.nodes:
            self._utilisation()

    def _summary(self) -> None:
        report = self._report
        passed = f", {moment(report.ended)} of virtual time" if self._timed else ""
        text = Text.assemble(
            f"{counted(len(report.pods), 'pod')} on {counted(report.nodes, 'node')}{passed}: ",
            (f"{len(report.placed)} placed", GOOD),
            ", ",
            (f"{len(report.pending)} pending", BAD if report.pending else FAINT),
        )
        finished = sum(story.finished is not None for story in report.pods)
        if finished:
            text.append(f", {finished} finished")
        if report.preemptions:
            text.append(f", {report.evicted} evicted")
        if report.not_created:
            text.append(f", {report.not_created} not created, as those before them are not done", style=FAINT)
        paragraph(self._out, text)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _placed(self) -> None:
        times = ("Arrived", "Placed", "Until") if self._timed else ()
        headings = ("Pod", "Priority", "Tries", *times, "Node")
        rows = Grid(headings, right=range(1, len(headings) - 1))
        for story in self._report.placed[: self._most]:
            spans = (moment(story.arrived), moment(story.placed or 0.0), _until(story)) if self._timed else ()
            node = Text(story.node, style=GOOD)
            if story.evicted is not None:
                node.append(" (evicted)", style=BAD)
            rows.add(story.pod, str(story.priority), str(story.attempts), *spans, node)
        print_rows(self._out, rows, len(self._report.placed) - self._most)

    def _pending(self) -> None:
        rows = Grid(("Pending", "Pods", "Why"), right=(1,), spaced=True)
        groups = self._report.reasons
        for reason, stories in groups[: self._most]:
            rows.add("\n".join(first_of([story.pod for story in stories], 3)), str(len(stories)), reason)
        print_rows(self._out, rows, len(groups) - self._most)

    def _preemptions(self) -> None:
        times = ("At",) if self._timed else ()
        rows = Grid((*times, "Preemptor", "Priority", "Node", "Evicted"), right=(0, 2) if self._timed else (1,))
        for preemption in self._report.preemptions[: self._most]:
            at = (moment(preemption.time),) if self._timed else ()
            rows.add(*at, preemption.preemptor, str(preemption.priority), preemption.node, listed(preemption.victims))
        print_rows(self._out, rows, len(self._report.preemptions) - self._most)

    # -- utilisation --------------------------------------------------------------------------------------------------

    def _utilisation(self) -> None:
        """What nodes are asked for: at the end, or on average if time has passed."""
        report = self._report
        self._bars("Zone", [*report.by_zone, report.total] if len(report.by_zone) > 1 else [report.total])
        nodes = sorted(report.by_node, key=lambda node: (-max(map(self._of, node.resources.values())), node.name))
        if self._all_nodes or len(nodes) <= MOST_NODES:
            self._bars("Node", sorted(nodes, key=lambda node: node.name))
        else:
            half = MOST_NODES // 2
            self._bars("Fullest nodes", nodes[:half])
            self._bars("Emptiest nodes", nodes[-half:])
            paragraph(self._out, f"{len(nodes) - MOST_NODES} more in between (--all-nodes shows them)", STRONG)
        over = f"Requested on average over {moment(self._report.ended)}" if self._timed else "Requested at the end"
        note(self._out, f"{over}, as a share of what nodes offer.")

    def _bars(self, title: str, rows: Sequence[Utilisation]) -> None:
        of_nodes = ("Nodes",) if title == "Zone" else ("Zone",)
        resources = self._report.total.notable
        numbers = [len(resources) + 2, *([1] if title == "Zone" else [])]

        def filled(width: int) -> Grid:
            shown = Grid((title, *of_nodes, *map(title_of, resources), "Pods"), right=numbers)
            for row in rows:
                where = str(row.nodes) if title == "Zone" else row.zone
                shares = (row.resources.get(name) for name in resources)
                bars = (Text() if share is None else bar(self._of(share), width) for share in shares)
                shown.add(row.name, where, *bars, str(row.pods))
            return shown

        print_rows(self._out, with_bars(filled, self._out.width))

    def _of(self, share: Share) -> float:
        return share.mean if self._timed else share.end


def _until(story: PodStory) -> str:
    end = story.finished if story.finished is not None else story.evicted
    return "" if end is None else moment(end)

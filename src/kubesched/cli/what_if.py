"""`kubesched what-if`: what would be different if nodes were drained or added, workloads scaled, a pool upgraded?"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from kubesched.api.release import RELEASES
from kubesched.ask.answers import Skipped, answer
from kubesched.ask.edits import RescheduleAll, UpgradeNodes, UseConfiguration, read_nodes
from kubesched.ask.html import what_if_page
from kubesched.ask.output import agreeing, counted, first_of, listed
from kubesched.ask.what_if.answer import Count, Fullness, Moved, ShareChange, WhatIfAnswer
from kubesched.ask.what_if.what_if import what_if as ask
from kubesched.cli.cluster_options import (
    given_gates,
    manifests_of,
    output_option,
    plugin_errors_reported,
    read_gates,
    scheduler_config,
    simulation_options,
)
from kubesched.cli.cluster_source import ClusterSource, DurationType
from kubesched.cli.edit_options import NODES, EditOptions, edit_options
from kubesched.cli.grid import STRONG, Grid, unbroken
from kubesched.cli.input import refuse
from kubesched.cli.printing import (
    BAD,
    FAINT,
    GOOD,
    console,
    note,
    paragraph,
    print_plain,
    print_rows,
    print_skipped,
    progress_bar,
)
from kubesched.cli.releases import answer_releases
from kubesched.config import Features
from kubesched.simulate.report import moment, title_of
from kubesched.simulate.rolling_upgrade import UpgradePace

_NAMED = 3
MOST_ROWS = 40
_PACE = UpgradePace()


class DifferencePrinter:
    """Prints one answer."""

    def __init__(self, out: Console, answer: WhatIfAnswer, *, most: int | None) -> None:
        self._out = out
        self._answer = answer
        pods = len(answer.moved) + len(answer.placed) + len(answer.waiting)
        self._most = most if most is not None else pods + len(answer.groups)

    def print(self) -> None:
        self._summary()
        self._upgrade()
        self._moves("Moves", "To", self._answer.moved)
        self._moves("Finds a place", "On", self._answer.placed)
        self._waiting()
        if self._answer.gone:
            self._out.print()
            paragraph(self._out, f"No longer there: {listed(self._answer.gone)}")
        if self._answer.interrupted:
            self._out.print()
            paragraph(self._out, f"Jobs that are interrupted, and lose their work: {listed(self._answer.interrupted)}")
        self._groups()
        self._evictions()
        self._budgets()
        if not self._answer.is_nothing or self._answer.total.nodes.before != self._answer.total.nodes.after:
            self._fullness()
            self._workloads()
        self._unmanaged()

    def _summary(self) -> None:
        answer = self._answer
        changes = "; ".join(answer.changes)
        paragraph(self._out, changes[:1].upper() + changes[1:], STRONG)
        if answer.is_nothing:
            paragraph(self._out, "No pod is treated otherwise.", GOOD)
            return
        evicted = sum(len(eviction.victims) for eviction in answer.evictions)
        parts = [
            (f"{counted(len(answer.moved), 'pod')} moved", "" if answer.moved else FAINT),
            (f"{len(answer.placed)} placed", GOOD if answer.placed else FAINT),
            (f"{len(answer.waiting)} waiting", BAD if answer.waiting else FAINT),
            (f"{evicted} evicted by others", BAD if evicted else FAINT),
            (f"{counted(len(answer.broken_budgets), 'budget')} broken", BAD if answer.broken_budgets else FAINT),
        ]
        text = Text()
        for i, (part, style) in enumerate(parts):
            text.append(", " if i else "")
            text.append(part, style=style)
        paragraph(self._out, text)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _moves(self, title: str, to: str, moves: Sequence[Moved]) -> None:
        if not moves:
            return
        rows = Grid((title, "From", to))
        for move in moves[: self._most]:
            before = Text(move.from_node) if move.from_node else Text("new" if move.is_new else "waiting", style=FAINT)
            rows.add(move.pod, before, Text(move.to_node, style=GOOD))
        print_rows(self._out, rows, len(moves) - self._most)

    def _waiting(self) -> None:
        if not self._answer.waiting:
            return
        rows = Grid(("Waits", "Pods", "From", "Why"), right=(1,), spaced=True)
        for reason, pods in self._answer.reasons[: self._most]:
            names = [pod.pod for pod in pods]
            nodes = list(dict.fromkeys(pod.from_node or "new" for pod in pods))
            rows.add("\n".join(first_of(names, _NAMED)), str(len(pods)), listed(nodes, _NAMED), Text(reason, style=BAD))
        print_rows(self._out, rows, len(self._answer.reasons) - self._most)

    def _groups(self) -> None:
        if not self._answer.groups:
            return
        rows = Grid(("Pod group", "Needs", "Run before", "Run after", "Moved", ""), right=range(1, 5))
        for group in self._answer.groups[: self._most]:
            remark = Text("runs", style=GOOD)
            if not group.runs:
                short = f"{group.needed - group.after} too few run" if group.after else "waits as a whole"
                remark = Text(f"{short}: {group.reason}" if group.reason else short, style=BAD)
            elif (over := group.pods - group.after) > 0:
                remark = Text(f"runs, {counted(over, 'pod')} beyond what it needs {agreeing(over, 'wait')}")
            rows.add(group.group, *map(str, (group.needed, group.before, group.after, group.moved)), remark)
        print_rows(self._out, rows, len(self._answer.groups) - self._most)

    def _evictions(self) -> None:
        if not self._answer.evictions:
            return
        rows = Grid(("Evicted", "By", "Priority", "On"), right=(2,))
        for eviction in self._answer.evictions[: self._most]:
            rows.add("\n".join(eviction.victims), eviction.preemptor, str(eviction.priority), eviction.node)
        print_rows(self._out, rows, len(self._answer.evictions) - self._most)

    def _unmanaged(self) -> None:
        leaving = [pod.pod for pod in self._answer.moved if pod.unmanaged]
        leaving += [pod.pod for pod in self._answer.waiting if pod.unmanaged]
        if leaving:
            text = f"Without an owner, so that no controller recreates them: {listed(leaving)}"
            self._out.print()
            note(self._out, text)

    # -- budgets, upgrades --------------------------------------------------------------------------------------------

    def _budgets(self) -> None:
        if not self._answer.budgets:
            return
        rows = Grid(("Budget", "Needs", "Up before", "Up after", "Leave", ""), right=range(1, 5))
        for budget in self._answer.budgets:
            remark = Text("kept", style=GOOD)
            if budget.short:
                remark = Text("broken: too few are up", style=BAD)
            elif budget.slows:
                remark = Text(f"{budget.before - budget.wanted} may leave at once: a drain would have to wait")
            figures = (budget.wanted, budget.before, budget.after, budget.leaving)
            rows.add(budget.budget, *map(str, figures), remark)
        print_rows(self._out, rows)

    def _upgrade(self) -> None:
        upgrade = self._answer.upgrade
        if upgrade is None:
            return
        slow = [node for node in upgrade.replaced if node.waited_for]
        text = f"{counted(len(upgrade.replaced), 'node')} replaced in {moment(upgrade.seconds)}"
        waits = f", {len(slow)} of them waited for disruption budgets" if slow else ""
        paragraph(self._out, f"{text}{waits}.")
        if slow:
            rows = Grid(("Node", "Drained in", "Waited for"), right=(1,))
            for node in sorted(slow, key=lambda node: node.began - node.ended)[: self._most]:
                rows.add(node.node, moment(node.ended - node.began), listed(node.waited_for))
            print_rows(self._out, rows, len(slow) - self._most)
        if upgrade.forced:
            rows = Grid(("Evicted against a budget", "On", "After", "Budget"), right=(2,))
            for forced in upgrade.forced[: self._most]:
                rows.add(forced.pod, forced.node, moment(forced.time), Text(listed(forced.budgets), style=BAD))
            print_rows(self._out, rows, len(upgrade.forced) - self._most)

    # -- how full -----------------------------------------------------------------------------------------------------

    def _fullness(self) -> None:
        resources = [
            name
            for name, share in self._answer.total.resources.items()
            if name in ("cpu", "memory") or share.before or share.after
        ]
        columns = ("Nodes", *map(title_of, resources), "Pods")
        rows = Grid(("Zone", *columns), right=range(1, len(columns) + 1))
        zones: list[Fullness] = list(self._answer.zones)
        for member in [*zones, self._answer.total] if len(zones) > 1 else [self._answer.total]:
            shares = (_share(member.resources.get(name)) for name in resources)
            rows.add(member.name, _count(member.nodes), *shares, _count(member.pods))
        spread = (_share(self._answer.spread.get(name)) for name in resources)
        rows.add(Text("between nodes", style=FAINT), "", *spread, "")
        print_rows(self._out, rows)
        text = "Requested before → after, as a share of what nodes offer; below, the deviation between nodes."
        note(self._out, text)

    def _workloads(self) -> None:
        zones = list(dict.fromkeys(zone for workload in self._answer.workloads for zone in workload.zones))
        if len(zones) < 2:
            return
        rows = Grid(("Pods per zone", *sorted(zones)), right=range(1, len(zones) + 1))
        for workload in self._answer.workloads[: self._most]:
            rows.add(workload.workload, *(_count(workload.zones.get(zone, Count(0, 0))) for zone in sorted(zones)))
        print_rows(self._out, rows, len(self._answer.workloads) - self._most)


def _count(count: Count) -> str:
    return str(count.after) if count.before == count.after else unbroken(f"{count.before} → {count.after}")


def _share(share: ShareChange | None) -> str:
    if share is None:
        return ""
    before, after = ("-" if fraction is None else f"{fraction:.0%}" for fraction in (share.before, share.after))
    return after if before == after else unbroken(f"{before} → {after}")


@click.command("what-if")
@simulation_options
@edit_options
@click.option("--with-config", metavar="FILE", help="KubeSchedulerConfiguration that is in force with the changes.")
@click.option(
    "--with-feature-gates",
    multiple=True,
    metavar="GATE=BOOL,...",
    help="Features that are on or off with the changes. Can be repeated.",
)
@click.option(
    "--upgrade-to",
    type=click.Choice(list(RELEASES)),
    help="Release of Kubernetes to upgrade to: which pods are treated otherwise, and why, as `compare` says it.",
)
@click.option("--upgrade", multiple=True, metavar=NODES, help="Nodes to upgrade, a few at a time. Can be repeated.")
@click.option(
    "--surge",
    type=click.IntRange(min=0),
    default=_PACE.surge,
    show_default=True,
    help="Nodes that an upgrade adds before it drains as many; 0 is one at a time, without a spare.",
)
@click.option(
    "--node-startup",
    type=DurationType(),
    default=f"{_PACE.node_startup:g}s",
    show_default=True,
    help="How long a new node takes in an upgrade.",
)
@click.option(
    "--pod-startup",
    type=DurationType(),
    default=f"{_PACE.pod_startup:g}s",
    show_default=True,
    help="How long a pod takes until it counts for its disruption budgets.",
)
@click.option(
    "--drain-timeout",
    type=DurationType(),
    default=f"{_PACE.drain_timeout:g}s",
    show_default=True,
    help="How long an upgrade waits for budgets before it evicts pods anyway.",
)
@output_option("html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod, even if there are more than {MOST_ROWS}.")
def what_if(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    edits: EditOptions,
    with_config: str | None,
    with_feature_gates: tuple[str, ...],
    upgrade_to: str | None,
    upgrade: tuple[str, ...],
    surge: int,
    node_startup: float | None,
    pod_startup: float | None,
    drain_timeout: float | None,
    output: str,
    all_pods: bool,
) -> None:
    """Change the cluster, and show the difference: who moves, who waits and why, who is evicted.

    The cluster is simulated twice, as it is and with all changes; what happens in both is left out. Nothing is
    written to a cluster.
    """
    if upgrade_to is not None:
        if with_config is not None or with_feature_gates or upgrade:
            refuse(["--upgrade-to is not combined with --with-config, --with-feature-gates or --upgrade"])
        sides = [features.release, RELEASES[upgrade_to]]
        answer_releases(source, sides, config_file, given_gates(), edits, output=output, all_pods=all_pods)
        return
    configs = [scheduler_config(source, config_file, features)]
    if with_config is not None or with_feature_gates:
        if with_feature_gates:
            features = read_gates(with_feature_gates, "--with-feature-gates", features.release)
        configs.append(scheduler_config(source, with_config or config_file, features))
    manifests = manifests_of(source, *configs, workloads=True)
    changes = edits.read(source, manifests, *configs)
    changes += [UseConfiguration(config.settings) for config in configs[1:]]
    if upgrade:
        pace = UpgradePace(surge, node_startup or 0.0, pod_startup or 0.0, drain_timeout or 0.0)
        changes.append(UpgradeNodes(tuple(node for text in upgrade for node in read_nodes(text)), pace=pace))
    if all(isinstance(edit, RescheduleAll) for edit in changes):
        refuse(["nothing is changed: give --drain, --lose, --gone, --add, --scale, --with, --with-config or --upgrade"])
    with plugin_errors_reported(), progress_bar("Simulating") as progress:
        difference = ask(manifests.objects, configs[0].settings, changes, seed=seed, progress=progress).difference
    match output:
        case "json" | "yaml":
            print_plain(answer(difference, Skipped(manifests.skipped)), output)
        case "html":
            click.echo(what_if_page(difference), nl=False)
        case _:
            out = console()
            DifferencePrinter(out, difference, most=None if all_pods else MOST_ROWS).print()
            print_skipped(out, manifests.skipped)

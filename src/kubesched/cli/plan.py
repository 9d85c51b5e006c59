"""`kubesched plan`: free nodes, fit pending pods, consolidate, buy the cheapest pool, place the whole queue."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import click
from rich.console import Console
from rich.status import Status

from kubesched.api.errors import UserError
from kubesched.ask.output import document
from kubesched.cli.cluster_options import cluster_of, output_option, plugin_errors_reported, simulation_options
from kubesched.cli.cluster_source import ClusterSource, namespace_option
from kubesched.cli.main import SuggestingGroup
from kubesched.cli.plan_view import print_plan
from kubesched.cli.printing import console, print_plain, print_skipped
from kubesched.config import Features
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.movable import CRITICAL
from kubesched.planning.page import plan_page
from kubesched.planning.plan import PlanOutcome
from kubesched.planning.prices import read_prices
from kubesched.planning.question import PlanKind, PlanQuestion, plan_for
from kubesched.planning.script import script_of
from kubesched.planning.solver import require

F = TypeVar("F", bound=Callable[..., Any])

SHORT_OF_GOAL = 1
"""The exit code where no plan reaches the goal; 0 if one does, 2 for bad input."""


@click.group(cls=SuggestingGroup)
def plan() -> None:
    """Plan moves, nodes and placements, with a bound that says how far from the best they are.

    Nothing is written to a cluster. The exit code is 0 if a plan reaches the goal, and 1 if none does: it is partial,
    or impossible.
    """


def planning_options(command: F) -> F:
    """The options of every subcommand. The command returns its question."""

    @functools.wraps(command)
    def planned(
        source: ClusterSource,
        config_file: str | None,
        features: Features,
        seed: int,
        effort: int,
        output: str,
        namespace: str = "",
        prices: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        require()
        question: PlanQuestion = command(**options)
        listed = read_prices(prices) if question.needs_prices else None
        with plugin_errors_reported():
            cluster, manifests = cluster_of(source, config_file, features, seed)
            observed_at = datetime.now(UTC).isoformat(timespec="seconds")
            with searching(effort, seed) as search:
                best = plan_for(cluster, question, search, namespace=namespace, prices=listed, observed_at=observed_at)
        match output:
            case "json" | "yaml":
                print_plain(document("Plan", best), output)
            case "html":
                click.echo(plan_page(best, cluster), nl=False)
            case "sh":
                click.echo(script_of(best, cluster), nl=False)
            case _:
                print_plan(console(), best)
                print_skipped(console(), manifests.skipped)
        sys.exit(0 if best.outcome is PlanOutcome.FOUND else SHORT_OF_GOAL)

    wrapped: Any = planned
    for option in (
        output_option("html", "sh"),
        click.option(
            "--effort",
            type=click.IntRange(min=0),
            default=PlanSearch.effort,
            show_default=True,
            help="How many groups of nodes are packed anew at most, in search of a better plan.",
        ),
        simulation_options,
    ):
        wrapped = option(wrapped)
    return cast(F, wrapped)


def moving_options(command: F) -> F:
    """Which pods may move."""
    wrapped: Any = command
    for option in (
        click.option(
            "--exempt", multiple=True, metavar="KEY=VALUE,...", help="Pods with these labels stay. Can be repeated."
        ),
        click.option(
            "--keep-priority",
            type=int,
            default=CRITICAL,
            show_default=True,
            help="Pods of this priority, or a higher one, stay.",
        ),
        click.option(
            "--delete-emptydir-data", is_flag=True, help="Move pods with local data, too, as kubectl drain does."
        ),
    ):
        wrapped = option(wrapped)
    return cast(F, wrapped)


prices_option = click.option(
    "--prices", required=True, multiple=True, metavar="FILE", help="Price list, as CSV or YAML."
)


@contextmanager
def searching(effort: int, seed: int) -> Iterator[PlanSearch]:
    """A search that says how far it is, and ends with the best so far at the first Ctrl-C."""
    interrupted: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        if interrupted:
            raise KeyboardInterrupt
        interrupted.append(number)
        click.echo("Interrupted: the best plan so far is checked and shown; once more to stop", err=True)

    out = Console(stderr=True)
    status = Status("Searching", console=out) if out.is_terminal else None
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        if status is not None:
            status.start()
        tell = status.update if status is not None else lambda text: None
        yield PlanSearch(tell=tell, is_over=lambda: bool(interrupted), effort=effort, seed=seed)
    finally:
        signal.signal(signal.SIGINT, before)
        if status is not None:
            status.stop()


@plan.command()
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="How many to empty.")
@click.option("--pool", default="", help="Only nodes of this pool.")
@click.option("--selector", default="", metavar="KEY=VALUE,...", help="Only nodes with these labels.")
@click.option("--domain", default="", metavar="KEY", help="Empty a whole domain, such as a rack: all nodes of a value.")
@click.option("--max-moves", type=click.IntRange(min=0), help="Move at most so many pods.")
@moving_options
@planning_options
def free(**limits: Any) -> PlanQuestion:
    """Find the fewest moves that empty so many nodes, or a whole domain."""
    return PlanQuestion(goal=PlanKind.FREE, **limits)


@plan.command()
@click.argument("target", required=False, default="")
@namespace_option
@moving_options
@planning_options
def fit(**limits: Any) -> PlanQuestion:
    """Find the fewest moves after which pending pods find nodes.

    TARGET is NAME, TYPE/NAME or NAMESPACE/TYPE/NAME of a pod, podgroup or workload; without it all pending pods are
    meant, such as those of one more -f.
    """
    return PlanQuestion(goal=PlanKind.FIT, **limits)


@plan.command()
@prices_option
@click.option("--save", "share", metavar="PERCENT", help="Save so much of the cost, with the fewest moves; else all.")
@click.option("--replace", is_flag=True, help="New nodes of the price list may come in the place of others.")
@moving_options
@planning_options
def consolidate(share: str | None, **limits: Any) -> PlanQuestion:
    """Find nodes that can go, so that the others cost less."""
    return PlanQuestion(goal=PlanKind.CONSOLIDATE, save=None if share is None else read_percent(share), **limits)


def read_percent(text: str) -> float:
    """`20%` or `20`. Raises UserError."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 < value <= 100:
        raise UserError(f"--save {text}: expected a share such as 20%, above 0 and at most 100")
    return value


@plan.command()
@prices_option
@planning_options
def pool() -> PlanQuestion:
    """Find the cheapest nodes to buy on which all pending pods run."""
    return PlanQuestion(goal=PlanKind.POOL)


@plan.command()
@planning_options
def queue() -> PlanQuestion:
    """Say who of the pending pods runs and where: by priority, then most, then oldest first."""
    return PlanQuestion(goal=PlanKind.QUEUE)

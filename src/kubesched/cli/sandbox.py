"""`kubesched sandbox`: a cluster in one process."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import uvloop
from rich.console import Console

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError, located
from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.schema import convert
from kubesched.api.yaml import YamlError, documents
from kubesched.cli.cluster_options import config_option, feature_gates_option, settings_of
from kubesched.cli.input import describe, read, refuse
from kubesched.cli.printing import console
from kubesched.cli.sandbox_summary import TRY_NEXT, Transcript, heading_of, line, print_beginning, summary
from kubesched.cli.terminal.screen import Surroundings
from kubesched.cli.terminal.show import TerminalView
from kubesched.cli.ui import started
from kubesched.config import Features
from kubesched.config.features import POD_GROUP_GATES
from kubesched.framework.profile import ProfileError
from kubesched.plugins.registry import all_plugins
from kubesched.sandbox.box import Plan, Sandbox
from kubesched.sandbox.http import ExposedError, Rule, parse_fault
from kubesched.sandbox.nodes import node_manifests
from kubesched.sandbox.scenarios import SCENARIOS, Scenario, Stage, play
from kubesched.scheduler import garbage
from kubesched.ui.server import PageServer
from kubesched.ui.sources import observe_scheduler

_TOKEN_BYTES = 18
"""So that the address of the page fits a line of 60 columns; it can still not be guessed."""
_SOON = 5.0
"""Seconds after which a node counts as lost in a story, which cannot wait for as long as a cluster does."""


@click.command()
@click.option(
    "--nodes", "count", type=click.IntRange(min=0), default=10, show_default=True, help="Number of nodes to create."
)
@click.option("--node-file", help="File with Node manifests to create, instead of --nodes.")
@click.option(
    "--gpus", type=click.IntRange(min=0), default=0, help="Number of example GPUs per node, for ResourceClaims."
)
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), help="Scenario to play; it has its own nodes.")
@config_option
@feature_gates_option
@click.option(
    "--pod-groups", is_flag=True, help=f"Turn on all about pod groups: the gates {', '.join(POD_GROUP_GATES)}."
)
@click.option("--no-scheduler", is_flag=True, help="Do not schedule: wait for a scheduler that connects.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 picks a free one.")
@click.option("--token", help="Bearer token that clients must send.")
@click.option("--tls", is_flag=True, help="Serve over TLS, with a self-signed certificate.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Directory to store objects in; in memory if not set."
)
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="File to write the kubeconfig to.")
@click.option("--fault", "faults", multiple=True, help="Fault to inject, e.g. 429:p=0.1,verb=create. Can be repeated.")
@click.option("--no-ui", is_flag=True, help="Do not serve the web page.")
@click.option("--ui-port", type=click.IntRange(0, 65535), default=0, help="Port of the web page; 0 picks a free one.")
@click.option("--seed", type=int, help="Seed for repeatable names, delays and draws.")
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="Stop after this many seconds.")
def sandbox(
    count: int,
    node_file: str | None,
    gpus: int,
    scenario: str | None,
    config_file: str | None,
    features: Features,
    pod_groups: bool,
    no_scheduler: bool,
    host: str,
    port: int,
    token: str | None,
    tls: bool,
    data_dir: Path | None,
    kubeconfig: Path | None,
    faults: tuple[str, ...],
    no_ui: bool,
    ui_port: int,
    seed: int | None,
    seconds: float | None,
) -> None:
    """Run a cluster in one process: an API server for kubectl, hollow nodes, controllers and the scheduler.

    It needs nothing else and leaves nothing behind, unless --data-dir or --kubeconfig is set. On a terminal it shows a
    live view; otherwise it prints decisions as they are made, and stops at the end of the scenario. Either way
    it prints the address of a web page that shows the cluster, the queue and every decision.
    """
    story = SCENARIOS[scenario] if scenario else None
    gates = (*(story.gates if story else ()), *(POD_GROUP_GATES if pod_groups else ()))
    features = Features.of({**features.changed, **dict.fromkeys(gates, True)})
    settings = settings_of(config_file, features)
    nodes = nodes_of(node_file) if node_file else node_manifests(story.nodes if story else count)
    plan = Plan(
        nodes=nodes,
        gpus=gpus,
        configuration=settings,
        plugins=all_plugins(),
        schedules=not no_scheduler,
        host=host,
        port=port,
        token=token,
        tls=tls,
        data_dir=data_dir,
        kubeconfig=kubeconfig and kubeconfig.absolute(),
        faults=_rules(faults),
        seed=seed,
        node_grace=_SOON if story else Plan.node_grace,
    )
    if warning := _warning(plan):
        click.echo(warning, err=True)
    garbage.collect_seldom()
    with located(config_file or "configuration", ProfileError), located("sandbox", ExposedError):
        uvloop.run(_run(plan, story, seconds, source=node_file or "sandbox", page_port=None if no_ui else ui_port))


def _warning(plan: Plan) -> str:
    if plan.token is None or plan.tls:
        return ""
    return "--token without --tls: kubectl sends no token over plain http, so all its calls end in 401; add --tls"


class Said:
    """What the story says at this moment, for all who show it."""

    def __init__(self) -> None:
        self.text = ""

    def say(self, text: str) -> None:
        self.text = text


async def _run(
    plan: Plan, story: Scenario | None, seconds: float | None, *, source: str, page_port: int | None
) -> None:
    ended = asyncio.Event()
    running = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running.add_signal_handler(number, ended.set)
    box = await _started(plan, source)
    said = Said()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(box.stop)
        page = await _page(box, plan, said, page_port, stack) if page_port is not None else ""
        out = console()
        hints = story.try_next if story else TRY_NEXT
        ending = asyncio.create_task(ended.wait())
        stack.callback(ending.cancel)
        if out.is_terminal:
            await _show_live(box, plan, out, story, seconds, ending, said, page=page, hints=hints)
        else:
            print_beginning(out, box, nodes=len(plan.nodes), page=page, hints=hints)
            await _print_story(box, out, story, seconds, ending, said)
        out.print(summary(box, out.width))


async def _page(box: Sandbox, plan: Plan, said: Said, port: int, stack: contextlib.AsyncExitStack) -> str:
    """Serve the web page until the stack unwinds. Its address."""
    clock = asyncio.get_running_loop().time
    observed = observe_scheduler(
        box.scheduler,
        plan.configuration,
        kind="sandbox",
        title=f"sandbox at {box.server.url}",
        clock=clock,
        plugins=plan.plugins,
        saying=lambda: said.text,
    )
    server = PageServer(observed, port=port, token=secrets.token_urlsafe(_TOKEN_BYTES))
    await started(server)
    stack.push_async_callback(server.stop)
    return server.url


async def _started(plan: Plan, source: str) -> Sandbox:
    """The sandbox at work. UserError if nodes, whose source is named, files or the port cannot be used."""
    try:
        box = Sandbox(plan)
        await box.start()
    except ApiError as error:
        raise UserError(f"{source}: {error}") from error
    except OSError as error:
        raise UserError(describe(error, error.filename2 or error.filename or "sandbox")) from error
    return box


async def _show_live(
    box: Sandbox,
    plan: Plan,
    out: Console,
    story: Scenario | None,
    seconds: float | None,
    ending: asyncio.Task[Any],
    said: Said,
    *,
    page: str,
    hints: tuple[str, ...],
) -> None:
    """The live view, until it is left, a signal or the time limit. After a story the cluster stays.

    What happened while it was shown is printed when it ends, as it would have been without it.
    """
    transcript = Transcript()
    box.chronicle.on_entry = lambda entry: transcript.add(line(entry))

    def say(text: str) -> None:
        said.say(text)
        transcript.add(heading_of(text))

    async def tell() -> None:
        await _play(box, story, say)
        said.say("")

    def around(has_keys: bool) -> Surroundings:
        return Surroundings(str(box.kubeconfig), page, _warning(plan), hints, has_keys)

    view = TerminalView(box, plan.configuration, plan.plugins)
    telling = asyncio.create_task(tell())
    showing = asyncio.create_task(view.show(around, lambda: said.text))
    waits = {showing, ending, telling}
    try:
        async with asyncio.timeout(seconds):
            while not {showing, ending} - waits:
                done, waits = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
    except TimeoutError:
        pass
    finally:
        await _cancelled(telling, showing)
        transcript.print(out)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _print_story(
    box: Sandbox,
    out: Console,
    story: Scenario | None,
    seconds: float | None,
    ending: asyncio.Task[Any],
    said: Said,
) -> None:
    """The story as lines of text, to its end; without a story, until a signal or the time limit."""
    box.chronicle.on_entry = lambda entry: out.print(line(entry), soft_wrap=True)

    def say(text: str) -> None:
        said.say(text)
        out.print(heading_of(text))

    telling = {asyncio.create_task(_play(box, story, say))} if story is not None else set()
    done, _ = await asyncio.wait({ending, *telling}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    await _cancelled(*telling - done)
    for task in done:
        task.result()
    box.chronicle.on_entry = lambda entry: None


async def _play(box: Sandbox, story: Scenario | None, say: Callable[[str], None]) -> None:
    if story is not None:
        await play(story, Stage(box.api, box.nodes), say)


def _rules(texts: tuple[str, ...]) -> list[Rule]:
    rules = []
    for text in texts:
        with located(f"--fault {text}"):
            rules.append(parse_fault(text))
    return rules


def nodes_of(file: str) -> list[Object]:
    """The nodes that the file stands for; or all that is wrong with it, and the end."""
    source, text = read(file)
    try:
        templates = _templates([document.value for document in documents(text)])
    except YamlError as error:
        refuse([f"{source}: {error}"])
    mistakes = [f"{source}: {mistake}" for i, each in enumerate(templates, 1) for mistake in _mistakes(i, each)]
    if mistakes or not templates:
        refuse(mistakes or [f"{source}: no Node in it"])
    nodes = node_manifests(templates)
    names = Counter(node["metadata"]["name"] for node in nodes)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        refuse([f"{source}: there are {names[name]} nodes named {name!r}" for name in twice])
    return nodes


def _templates(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        is_list = isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list)
        found += value["items"] if is_list else [value]
    return found


def _mistakes(number: int, template: Any) -> list[str]:
    """What is wrong with the shape of a template; what its values may be is for the API to say."""
    if not isinstance(template, dict) or template.get("kind") != "Node":
        return [f"document {number}: expected a Node"]
    _, mistakes = convert(template, Node, shape_only=True)
    lines = [f"document {number}: {mistake}" for mistake in mistakes]
    count = template.get("count")
    if count is not None and (type(count) is not int or count < 0):
        lines.append(f"document {number}: count: expected how many there are, got {count!r}")
    return lines

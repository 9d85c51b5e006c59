"""`kubesched sandbox`: a cluster in one process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import uvloop
from rich.text import Text

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError, located
from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.schema import convert
from kubesched.api.yaml import YamlError, documents
from kubesched.cli.cluster_options import config_option, feature_gates_option, settings_of
from kubesched.cli.input import describe, read, refuse
from kubesched.cli.printing import console
from kubesched.config import Features
from kubesched.config.features import POD_GROUP_GATES
from kubesched.framework.profile import ProfileError
from kubesched.http.access import ExposedError
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler import garbage
from kubesched_sandbox.box import Sandbox, SandboxSettings
from kubesched_sandbox.chronicle import Entry
from kubesched_sandbox.http import Rule, parse_fault
from kubesched_sandbox.nodes import GPUS, gpus_of, node_manifests
from kubesched_sandbox.page import serve_page
from kubesched_sandbox.scenarios import SCENARIOS, Scenario, ScenarioCluster, play
from kubesched_sandbox.view import Addresses, LiveView, heading_of, hints_for, line, print_beginning, print_summary

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
@click.option(
    "--gpu-nodes",
    type=click.IntRange(min=0),
    help="Number of nodes that have them, the last ones; all if not set. In --node-file: annotation kubesched.io/gpus.",
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
@click.option("--otlp", default="", metavar="ENDPOINT", help="Where to send a trace of every attempt: OTLP over gRPC.")
@click.option("--no-ui", is_flag=True, help="Do not serve the web page.")
@click.option("--ui-port", type=click.IntRange(0, 65535), default=0, help="Port of the web page; 0 picks a free one.")
@click.option("--seed", type=int, help="Seed for repeatable names, delays and draws.")
@click.option("--for", "seconds", type=click.FloatRange(min=0), help="Stop after this many seconds.")
def sandbox(**options: Any) -> None:
    """Run a cluster in one process: an API server for kubectl, hollow nodes, controllers and the scheduler.

    It needs nothing else and leaves nothing behind, unless --data-dir or --kubeconfig is set. On a terminal it shows a
    live picture; otherwise it prints decisions as they are made, and stops at the end of the scenario. Either way
    it prints the address of a web page that shows the cluster, the queue and every decision.
    """
    chosen = SandboxOptions(**options)
    settings = chosen.settings()
    if warning := _warning(settings):
        click.echo(warning, err=True)
    garbage.collect_seldom()
    with located(chosen.config_file or "configuration", ProfileError), located("sandbox", ExposedError):
        uvloop.run(_run(settings, chosen))


@dataclass(frozen=True)
class SandboxOptions:
    """The options of the command, a field each."""

    count: int
    node_file: str | None
    gpus: int
    gpu_nodes: int | None
    scenario: str | None
    config_file: str | None
    features: Features
    pod_groups: bool
    no_scheduler: bool
    host: str
    port: int
    token: str | None
    tls: bool
    data_dir: Path | None
    kubeconfig: Path | None
    faults: tuple[str, ...]
    otlp: str
    no_ui: bool
    ui_port: int
    seed: int | None
    seconds: float | None

    @property
    def story(self) -> Scenario | None:
        return SCENARIOS[self.scenario] if self.scenario else None

    def settings(self) -> SandboxSettings:
        """What the options ask for. UserError, or the end, if a file or a fault cannot be read."""
        story = self.story
        gates = (*(story.gates if story else ()), *(POD_GROUP_GATES if self.pod_groups else ()))
        features = Features.of({**self.features.changed, **dict.fromkeys(gates, True)}, self.features.release)
        configuration = settings_of(self.config_file, features)
        nodes = nodes_of(self.node_file) if self.node_file else node_manifests(story.nodes if story else self.count)
        return SandboxSettings(
            nodes=nodes,
            gpus=gpus_of(nodes, self.gpus, on_last=self.gpu_nodes),
            configuration=configuration,
            plugins=all_plugins(),
            schedules=not self.no_scheduler,
            host=self.host,
            port=self.port,
            token=self.token,
            tls=self.tls,
            data_dir=self.data_dir,
            kubeconfig=self.kubeconfig and self.kubeconfig.absolute(),
            faults=_rules(self.faults),
            otlp=self.otlp,
            seed=self.seed,
            node_grace=_SOON if story else SandboxSettings.node_grace,
        )


def _warning(settings: SandboxSettings) -> str:
    if settings.token is None or settings.tls:
        return ""
    return "--token without --tls: kubectl sends no token over plain http, so all its calls end in 401; add --tls"


class Narrator:
    """Prints what the story says and what the scheduler decides; `saying` is the story's latest sentence."""

    def __init__(self, print_line: Callable[[Text], None]) -> None:
        self.saying = ""
        self.print_line = print_line

    def say(self, sentence: str) -> None:
        self.saying = sentence
        self.print_line(heading_of(sentence))

    def tell(self, entry: Entry) -> None:
        self.print_line(line(entry))


async def _run(settings: SandboxSettings, options: SandboxOptions) -> None:
    ended = asyncio.Event()
    running = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running.add_signal_handler(number, ended.set)
    box = await _started(settings, source=options.node_file or "sandbox")
    out = console()
    narrator = Narrator(lambda text: out.print(text, soft_wrap=True))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(box.stop)
        page = "" if options.no_ui else await serve_page(box, settings, lambda: narrator.saying, options.ui_port, stack)
        hints = options.story.try_next if options.story else hints_for(names_of(settings.nodes))
        print_beginning(out, box, nodes=len(settings.nodes), page=page, hints=hints)
        view = None
        if out.is_terminal:
            addresses = Addresses(str(box.kubeconfig), page, _warning(settings), hints)
            view = LiveView(box, addresses, lambda: narrator.saying)
            narrator.print_line = view.print
        box.chronicle.on_entry = narrator.tell
        await _until_the_end(box, options, narrator, view, ended)
        box.chronicle.on_entry = lambda entry: None
        print_summary(out, box)


async def _until_the_end(
    box: Sandbox, options: SandboxOptions, narrator: Narrator, view: LiveView | None, ended: asyncio.Event
) -> None:
    """Until a signal or the time limit; where there is no view, also until the end of the story."""

    async def play_story() -> None:
        if options.story is not None:
            narrator.saying = options.story.steps[0].says  # also in a picture that is drawn before
            await play(options.story, ScenarioCluster(box.api, box.nodes), narrator.say)
            narrator.saying = ""
        if view is not None or options.story is None:
            await ended.wait()

    tasks = [asyncio.create_task(play_story()), asyncio.create_task(ended.wait())]
    if view is not None:
        tasks.append(asyncio.create_task(view.show()))
    done, _ = await asyncio.wait(tasks, timeout=options.seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _started(settings: SandboxSettings, source: str) -> Sandbox:
    """The sandbox at work. UserError if nodes, whose source is named, files or the port cannot be used."""
    try:
        box = Sandbox(settings)
        await box.start()
    except ApiError as error:
        raise UserError(f"{source}: {error}") from error
    except OSError as error:
        raise UserError(describe(error, error.filename2 or error.filename or "sandbox")) from error
    return box


def names_of(nodes: Sequence[Object]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes]


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
    gpus = None if mistakes else ((template.get("metadata") or {}).get("annotations") or {}).get(GPUS)
    if gpus is not None and not gpus.isdecimal():
        lines.append(f"document {number}: annotation {GPUS}: expected a number, got {gpus!r}")
    count = template.get("count")
    if count is not None and (type(count) is not int or count < 0):
        lines.append(f"document {number}: count: expected how many there are, got {count!r}")
    return lines

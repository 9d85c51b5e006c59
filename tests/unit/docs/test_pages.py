"""Documentation is held to the code: commands parse, flags, files, endpoints and metrics exist, examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from tests.unit.daemon.chart import Chart
from tests.unit.docs.pages import PAGES, ROOT, Command, anchors, blocks, commands, links, name_of, spans

from kubesched import config
from kubesched.api.custom import read_custom
from kubesched.api.release import NEWEST
from kubesched.cli import main
from kubesched.config.features import GATES_BY_FIELD
from kubesched.config.gates import gates_of
from kubesched.daemon.feature_gates import GATES, NOT_FOLLOWED, FeatureGates
from kubesched.daemon.metrics.registry import CLIENT, HEALTH, OWN, PROCESS, SCHEDULER, MetricsRegistry
from kubesched.daemon.options import FLAGS, Options, parse_options
from kubesched.daemon.serving.endpoints import Endpoints, Served
from kubesched.framework.cycle import Cycle
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_pod
from kubesched_sandbox.api.usage import USAGE
from kubesched_sandbox.http import parse_fault
from kubesched_sandbox.http.faults import What
from kubesched_sandbox.nodes import node_manifests
from kubesched_sandbox.nodes.manifests import DURATION, EXIT_CODE, FAILED, GPUS, HOLLOW, STARTUP
from kubesched_sandbox.scenarios import SCENARIOS

DOCS = ROOT / "docs"
OPERATING, SANDBOX, PLUGINS = DOCS / "operating.md", DOCS / "sandbox.md", DOCS / "writing-a-plugin.md"

_FOLDERS = re.compile(r"(?:src|docs|deploy|examples|tests|bench|tools)/[\w./-]*\w/?")
_MODULE = re.compile(r"[\w/]+\.py")
_METRIC = re.compile(r"\b(?:scheduler|rest_client|leader_election|kubesched)_[a-z_]+")
_ENDPOINT = re.compile(r"/(?:livez|healthz|readyz|metrics|configz|flagz|statusz|debug)[\w/]*")

MODULES = [
    str(file)
    for folder in ("src", "sandbox/src", "tests", "examples", "tools")
    for file in (ROOT / folder).rglob("*.py")
]
COMMANDS = sorted(set(commands()))


def options_of(command: click.Command) -> set[str]:
    if isinstance(command, click.Group) and command.commands:
        return set().union(*map(options_of, command.commands.values()))
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}


_GROUP = main.main
KUBESCHED = {
    name: command for name in main.COMMANDS if (command := _GROUP.get_command(click.Context(_GROUP), name)) is not None
}
RUN_FLAGS = {f"--{name}" for name in FLAGS}
EVERY_FLAG = RUN_FLAGS.union(*(options_of(command) for command in KUBESCHED.values()))
FLAGS_OF = {"docs/operating.md": RUN_FLAGS, "docs/sandbox.md": options_of(KUBESCHED["sandbox"])}
"""Pages about one command; elsewhere any command's flags may be mentioned."""


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_command_line_parses(command: Command) -> None:
    name, *arguments = command.arguments
    if name == "--version":
        return
    assert name in KUBESCHED
    if name == "run":
        parse_options(arguments)
    elif arguments:
        check(KUBESCHED[name], arguments)


def check(command: click.Command, arguments: list[str]) -> None:
    """Options are there, have as many values as they need, and values that can be. Files need not exist."""
    context = click.Context(command)
    given, rest, order = command.make_parser(context).parse_args(list(arguments))
    if isinstance(command, click.Group):
        assert rest[0] in command.commands
        if rest[1:]:
            check(command.commands[rest[0]], rest[1:])
        return
    assert not rest
    for parameter in command.params:
        is_given = parameter in order and bool(given[str(parameter.name)])
        assert is_given or not parameter.required, f"{parameter.name} is missing"
        if is_given and isinstance(parameter.type, click.Choice | click.IntRange | click.FloatRange):
            parameter.type_cast_value(context, given[str(parameter.name)])
        if is_given and parameter.name == "faults":
            for rule in given["faults"]:
                parse_fault(rule)


def test_commands_were_found_on_the_pages_that_are_about_commands() -> None:
    assert {"README.md", "docs/operating.md", "docs/sandbox.md", "docs/simulating.md"} <= {c.page for c in COMMANDS}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_flag_exists(page: Path) -> None:
    known = FLAGS_OF.get(name_of(page), EVERY_FLAG)
    mentioned = {span.split()[0].partition("=")[0] for span in spans(page) if span.startswith("--")}
    assert mentioned <= known


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = (*spans(page), *blocks(page, "console"))
    named = {name for text in texts for name in re.findall(r"^make (\w+)", text, re.MULTILINE)}
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_named_exists(page: Path) -> None:
    named = [span for span in spans(page) if _FOLDERS.fullmatch(span)]
    assert [name for name in named if not (ROOT / name).exists()] == []
    diagrams = " ".join(blocks(page, ""))
    modules = {*re.findall(r"[\w/]+\.py\b", diagrams), *(span for span in spans(page) if _MODULE.fullmatch(span))}
    assert {module for module in modules if not any(file.endswith(f"/{module}") for file in MODULES)} == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_manifest_can_be_read(page: Path) -> None:
    for text in blocks(page, "yaml"):
        for document in yaml.safe_load_all(text):
            if document.get("kind") == "KubeSchedulerConfiguration":
                config.load(yaml.safe_dump(document))


# -- operating ---------------------------------------------------------------------------------------------------------


def test_every_metric_to_watch_exists() -> None:
    known = {series.name for series in (*SCHEDULER, *CLIENT, *PROCESS, *HEALTH, *OWN)}
    named = {name.removesuffix("_sum") for name in _METRIC.findall(OPERATING.read_text())}
    assert named
    assert named <= known


def test_every_endpoint_is_served() -> None:
    dumps: dict[str, Any] = dict.fromkeys(("queue", "state", "nominated", "shadow"), dict)
    gates = FeatureGates()
    served = Served(
        options=Options(), configuration=config.default(), gates=gates, metrics=MetricsRegistry(gates), dumps=dumps
    )
    application = Endpoints(served).application()
    routes = {str(resource.canonical) for resource in application.router.resources()}
    named = {found[0] for span in spans(OPERATING) if (found := _ENDPOINT.match(span))}
    assert named - routes <= {"/debug"}
    assert {"/livez", "/readyz", "/metrics", "/debug/queue", "/debug/flags/v"} <= named


def test_the_values_for_shadow_mode_make_a_shadow_of_the_default_scheduler() -> None:
    page = ROOT / "deploy" / "README.md"
    [given] = re.findall(r"helm install kubesched-shadow .* --set (\S+)", page.read_text())
    values = {name: yaml.safe_load(value) for name, value in (each.split("=") for each in given.split(","))}
    objects = Chart(ROOT / "deploy" / "helm" / "kubesched").rendered(**values)
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert parse_options(container["args"]).shadow
    [configured] = [each for each in objects if each["kind"] == "ConfigMap"]
    settings = config.load(configured["data"]["scheduler.yaml"])
    assert [profile.scheduler_name for profile in settings.profiles] == ["default-scheduler"]


def test_the_page_lists_all_gates_that_change_something_and_all_that_should_but_do_not() -> None:
    assert rows(OPERATING, "gate | default | the other way") == set(GATES_BY_FIELD.values())
    assert rows(OPERATING, "gate | would") == set(NOT_FOLLOWED)
    for gate in GATES_BY_FIELD.values():
        is_on = gate in GATES and GATES[gate].default  # one of a later release is off in this one
        newest = gates_of(NEWEST).get(gate)
        said = "off; on in v1.37" if newest and newest.default and not is_on else "on" if is_on else "off"
        assert f"| `{gate}` | {said} |" in OPERATING.read_text()


# -- the sandbox -------------------------------------------------------------------------------------------------------


def rows(page: Path, head: str) -> set[str]:
    """The first words, set as code, of the table that begins with this head."""
    table = page.read_text().partition(f"\n| {head} |")[2].partition("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_the_page_lists_all_options_faults_and_scenarios() -> None:
    assert rows(SANDBOX, "option | meaning") == options_of(KUBESCHED["sandbox"])
    assert rows(SANDBOX, "fault") == set(get_args(What))
    assert rows(SANDBOX, "name") == set(SCENARIOS)


def test_the_annotations_are_those_that_are_read() -> None:
    named = {span.partition(":")[0] for span in spans(SANDBOX) if span.startswith("kubesched.io/")}
    assert named == {HOLLOW, FAILED, GPUS, STARTUP, DURATION, EXIT_CODE, USAGE}


def test_the_node_file_makes_the_nodes_it_describes() -> None:
    [text] = [text for text in blocks(SANDBOX, "yaml") if "count: 3" in text]
    nodes = {node["metadata"]["name"]: node for node in node_manifests(list(yaml.safe_load_all(text)))}
    assert set(nodes) == {"web-0", "web-1", "web-2", "big"}
    assert nodes["big"]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert nodes["web-1"]["metadata"]["labels"]["disk"] == "ssd"


def test_the_example_of_a_test_passes() -> None:
    [text] = blocks(SANDBOX, "python")
    example: dict[str, Any] = {}
    exec(compile(text, str(SANDBOX), "exec"), example)
    example["test_a_pod_finds_a_node"]()


# -- plugins -----------------------------------------------------------------------------------------------------------


def test_the_plugin_that_waits_for_a_custom_resource_does() -> None:
    [text] = [text for text in blocks(PLUGINS, "python") if "class NeedsRack" in text]
    example: dict[str, Any] = {}
    exec(compile(text, str(PLUGINS), "exec"), example)
    racks, plugin = example["RACKS"], example["NeedsRack"]()
    assert [interest.event.kind for interest in plugin.events_to_register()] == [racks]
    state = ClusterState()
    cycle = Cycle(make_pod("web").build(), state)
    assert plugin.pre_filter(cycle).reasons == ("no rack yet",)
    state.objects.put(read_custom(racks, {"metadata": {"name": "first"}}))
    assert plugin.pre_filter(cycle) is None

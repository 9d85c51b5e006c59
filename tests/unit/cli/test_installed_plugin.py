"""A plugin of an installed package writes objects in PreBind and explains itself, as those in tree do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.installed_plugin import install_plugin

from kubesched.cli.main import main

PLUGIN = """
from kubesched.plugin import Details, ExplainPlugin, FilterPlugin, PreBindPlugin, Section, unschedulable

TOO_HOT = unschedulable("node(s) are too hot")


class CoolNodes(FilterPlugin, PreBindPlugin, ExplainPlugin):
    name = "CoolNodes"

    def filter_node(self, cycle, node):
        return TOO_HOT if int(node.labels["degrees"]) > 30 else None

    async def pre_bind(self, cycle, pod, node_name):
        node = await self.context.client.get("Node", node_name)
        warmer = {"degrees": str(int(node["metadata"]["labels"]["degrees"]) + 20)}
        await self.context.client.patch("Node", node_name, {"metadata": {"labels": warmer}})

    def explain(self, cycle, outcome, node):
        table = cycle.state.nodes
        degrees = {name: int(table.node(row).metadata.labels["degrees"]) for name, row in sorted(table.row_of.items())}
        rows = tuple((name, str(heat)) for name, heat in degrees.items() if heat > 30)
        summary = Section(notes=("At most 30 degrees will do.",), columns=("Hot", "Degrees"), rows=rows)
        apart = tuple(Section(f"About {name}", name, (f"It has {heat} degrees.",)) for name, heat in degrees.items())
        return Details((summary, *apart), degrees)
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: CoolNodes}]}}
"""
NODE = (
    "---\n{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {degrees: '%d'}}, status: {capacity: {pods: 2}}}\n"
)
POD = "---\n{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main}]}}\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration that enables the plugin, which is installed."""
    install_plugin(tmp_path, monkeypatch, PLUGIN, name="CoolNodes")
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return str(file)


def explain(config: str, *options: str, **degrees: int) -> Result:
    manifests = "".join(NODE % node for node in degrees.items()) + POD
    result = CliRunner().invoke(
        main, ("explain", "-f", "-", "--config", config, "--pod", "web", *options), input=manifests
    )
    assert result.exit_code == 0, result.output
    return result


def test_what_the_plugin_adds_is_printed(config: str) -> None:
    page = explain(config, n1=35, n2=41).stdout
    assert "node(s) are too hot" in page
    assert "At most 30 degrees will do." in page
    cells = [line.split() for line in page.splitlines()]
    assert (["Hot", "Degrees"] in cells, ["n1", "35"] in cells, ["n2", "41"] in cells) == (True, True, True)
    assert "About n1\nIt has 35 degrees." in page


def test_of_sections_about_nodes_only_that_of_the_winner_is_printed(config: str) -> None:
    page = explain(config, n1=35, n2=20).stdout
    assert "It goes to n2" in page
    assert "About n2" in page
    assert "About n1" not in page


def test_json_has_the_data_under_the_name_of_the_plugin(config: str) -> None:
    found = json.loads(explain(config, "-o", "json", n1=35, n2=41).stdout)
    assert found["details"]["CoolNodes"] == {"n1": 35, "n2": 41}
    assert (found["details"]["shortages"], found["details"]["devices"]) == ([], [])


def test_what_the_plugin_writes_before_binding_is_seen_by_the_next_pod(config: str) -> None:
    nodes = [NODE % ("n1", 20), NODE % ("n2", 20)]
    manifests = "".join([*nodes, POD, POD.replace("web", "two"), POD.replace("web", "three")])
    result = CliRunner().invoke(main, ("simulate", "-f", "-", "--config", config, "-o", "json"), input=manifests)
    pods = {pod["pod"]: pod for pod in json.loads(result.stdout)["pods"]}
    assert sorted(pod["node"] for pod in pods.values() if "node" in pod) == ["n1", "n2"]
    [waiting] = [pod for pod in pods.values() if "node" not in pod]
    assert waiting["message"].startswith("0/2 nodes are available: 2 node(s) are too hot.")

"""The page and `explain` read one decision the same way: the cause, the nearest nodes and the remedies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from tests.applied_remedies import Json, as_json, cluster_of
from tests.installed_plugin import install_plugin
from tests.unit.ask.test_remedies_property import clusters
from tests.unit.ui.observing import alive, service_of

from kubesched import config
from kubesched.ask.answers import Skipped, answer
from kubesched.ask.explain import explain
from kubesched.ask.output import plain
from kubesched.ask.remedies import remedies
from kubesched.cli.main import main
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.manifests import loads
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.pending import WOULD_FIT
from kubesched.ui.sources import observe_manifests
from kubesched.ui.views import PageViews

PENDING = "default/p"


def on_the_page(cluster: ClusterModel, key: str = PENDING) -> Json:
    """The page's documents about a pod: its view, and what would help it."""
    views = PageViews(observe_manifests(cluster, "cluster.yaml"))
    help_ = asyncio.run(service_of(views).ask_copy(lambda copy: remedies(copy, copy.pods[key]), is_read_only=True))
    return {"view": plain(views.pods.view(key)), "help": plain(help_, leave_out_empty=True)}


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_page_and_explain_name_the_same_cause_nodes_and_remedies(objects: list[Json]) -> None:
    cluster = cluster_of(objects)
    found = explain(cluster, cluster.pods[PENDING])
    document = answer(*found, Skipped({}))
    page = on_the_page(cluster)
    assert page["view"]["cause"] == document.get("cause", WOULD_FIT)
    misses = page["view"]["verdict"]["misses"]
    assert misses[: len(document["nearestMisses"])] == document["nearestMisses"]
    assert len(document["nearestMisses"]) == min(len(misses), 3)
    if not found.explanation.node:
        assert page["help"] == document["remedies"]


def test_the_cause_of_an_attempt_is_that_of_the_explanation() -> None:
    nodes = [make_node(f"n{i}").capacity(cpu=str(i)).label(pool="a" if i < 3 else "b").build() for i in range(1, 9)]
    pod = make_pod("p").node_selector(pool="a").requests(cpu="4").build()
    world, views = alive(*nodes, pod)
    world.tried()
    found = explain(cluster_of(as_json([*nodes, pod])), pod, with_remedies=False)
    assert found.findings.cause == "Insufficient cpu"
    assert [group.title for group in views.pending.groups().groups] == [found.findings.cause]


# -- a plugin of somebody else ----------------------------------------------------------------------------------------

PLUGIN = """
from dataclasses import replace
import numpy as np
from kubesched.plugin import AdvicePlugin, FilterPlugin, NodeShortfall, ObjectEdit, RemedyKind, RemedyProposal
from kubesched.plugin import propose_for_nearest, propose_label, unschedulable


class ThermalLimit(FilterPlugin, AdvicePlugin):
    name = "ThermalLimit"

    def filter_node(self, cycle, node):
        return unschedulable("node(s) are too hot") if int(node.labels["degrees"]) > 30 else None

    def distance(self, cycle, nodes):
        return np.array([int(nodes.node(i).metadata.labels["degrees"]) - 30 for i in range(len(nodes))]) / 100

    def shortfall(self, cycle, node):
        return NodeShortfall(f"is {int(node.labels['degrees']) - 30} degrees too hot")

    def remedies(self, cycle, nearest, only_here):
        yield from propose_for_nearest(nearest, self._cooled)
        yield RemedyProposal(RemedyKind.OTHER, "Hope", (ObjectEdit(cycle.pod, lambda pod: pod),))

    def _cooled(self, node):
        yield replace(propose_label(node, "degrees", "30"), text=f"Cool {node.name} down")
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: ThermalLimit}]}}
"""
NODE = (
    "---\n{apiVersion: v1, kind: Node, metadata: {name: NAME, labels: {degrees: 'N'}}, status: {capacity: {pods: 2}}}\n"
)
HOT = "".join(NODE.replace("NAME", name).replace("N'", f"{n}'") for name, n in (("a", 90), ("b", 31), ("c", 45)))
POD = "---\n{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main}]}}\n"


def test_plugin_of_another_package_names_its_own_nearest_miss_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, monkeypatch, PLUGIN, name="ThermalLimit")
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    asked = ("explain", "-f", "-", "--config", str(file), "p", "-o", "json")
    result = CliRunner().invoke(main, asked, input=HOT + POD)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    page = on_the_page(ClusterModel(loads(HOT + POD).objects, config.load(CONFIG)))
    assert [(miss["node"], miss["text"]) for miss in document["nearestMisses"]] == [
        ("b", "is 1 degrees too hot"),
        ("c", "is 15 degrees too hot"),
        ("a", "is 60 degrees too hot"),
    ]
    assert page["view"]["verdict"]["misses"] == document["nearestMisses"]
    assert document["remedies"]["found"][0]["steps"] == [{"sort": "labelNode", "text": "Cool b down"}]
    assert page["help"] == document["remedies"]
    texts = [step["text"] for remedy in document["remedies"]["found"] for step in remedy["steps"]]
    assert "Hope" not in texts, "a proposal that does not help is not shown"

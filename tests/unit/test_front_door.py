"""The front door for authors of plugins: what it promises is there, and a plugin is tested in a few lines."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from kubesched import plugin, testing
from kubesched.framework import plugin as extension_points
from kubesched.framework.decision import Outcome
from kubesched.plugin import Cycle, FilterPlugin, NodeView, Pod, ReservePlugin, Status, unschedulable
from kubesched.testing import Cluster, make_node, make_pod

pytest_plugins = ["pytester"]


class OneEach(FilterPlugin, ReservePlugin):
    """Lets one pod onto a node, and sets nothing aside for pods named `unlucky`."""

    name = "OneEach"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return unschedulable("taken") if node.pods else None

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return unschedulable("no luck") if pod.name == "unlucky" else None

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        pass


def test_names_promised_are_those_imported() -> None:
    for module in (plugin, testing):
        for name in module.__all__:
            assert hasattr(module, name)
    tree = ast.parse(Path(str(plugin.__file__)).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(plugin.__all__)


def test_every_extension_point_is_promised() -> None:
    points = {
        name
        for name, found in vars(extension_points).items()
        if inspect.isclass(found)
        and issubclass(found, extension_points.Plugin)
        and found is not extension_points.Plugin
    }
    assert points <= set(plugin.__all__)


def test_types_that_an_extension_point_takes_and_answers_are_promised() -> None:
    for name in plugin.__all__:
        methods = inspect.getmembers(getattr(plugin, name), inspect.isfunction) if name.endswith("Plugin") else []
        for method, function in methods:
            annotations = " ".join(map(str, function.__annotations__.values()))
            named = set(re.findall(r"\b[A-Z]\w+", annotations)) - {"None", "Any", "Callable", "Collection"}
            named -= {"CopyRoom", "Hashable", "Iterable", "Sequence"}  # the first is for headroom only
            assert named <= set(plugin.__all__), f"{name}.{method}"


def test_pod_that_is_scheduled_stands_on_its_node_for_those_after_it() -> None:
    cluster = Cluster(nodes=[make_node("n1"), make_node("n2")], plugins=[OneEach])
    assert {cluster.schedule(make_pod(name)).node for name in ("a", "b")} == {"n1", "n2"}
    refused = cluster.schedule(make_pod("c"))
    assert refused.node == ""
    assert refused.message.startswith("0/2 nodes are available: 2 taken.")


def test_pod_whose_reservation_fails_stands_nowhere() -> None:
    cluster = Cluster(nodes=[make_node("n1")], plugins=[OneEach])
    decision = cluster.schedule(make_pod("unlucky"))
    assert (decision.outcome, decision.node, decision.message) == (Outcome.RESERVE_FAILED, "", "OneEach: no luck")
    assert cluster.schedule(make_pod("lucky")).node == "n1"


def test_gated_pod_is_not_scheduled() -> None:
    decision = Cluster(nodes=[make_node("n1")]).schedule(make_pod("p").gate("example.com/wait"))
    assert (decision.outcome, decision.node) == (Outcome.GATED, "")


def test_explaining_a_pod_does_not_place_it() -> None:
    cluster = Cluster(nodes=[make_node("n1")], plugins=[OneEach])
    assert cluster.explain(make_pod("p")).node == "n1"
    assert cluster.schedule(make_pod("q")).node == "n1"


def test_configuration_says_what_is_enabled() -> None:
    config = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]
    """
    large = make_pod("large").requests(cpu="64")
    assert Cluster(nodes=[make_node("n1")], config=config).schedule(large).node == "n1"
    assert Cluster(nodes=[make_node("n1")]).schedule(large).node == ""


def test_pytest_finds_the_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(make_cluster, make_node, make_pod):
            assert make_cluster(nodes=[make_node("n1")]).schedule(make_pod("p")).node == "n1"
        """
    )
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    [module] = project["entry-points"]["pytest11"].values()
    pytester.runpytest_inprocess("-p", module, "-p", "no:cacheprovider").assert_outcomes(passed=1)

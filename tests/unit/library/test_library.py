"""The library: a cluster from anywhere has the same answers, and every answer is a dict, a frame and a page."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from tests.front_server import fronted
from tests.unit.ask.clusters import shop

import kubesched
from kubesched import Cluster, Result, UserError, make_node, make_pod
from kubesched.ask.answers import PARTS
from kubesched.ask.output import schema_of
from kubesched.cli.main import main
from kubesched.library import results
from kubesched.planning.plan import Plan
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "examples" / "shop"
PLANNING = ROOT / "examples" / "planning"
GANG = ("-f", str(PLANNING / "cluster.yaml"), "-f", str(PLANNING / "training.yaml"))
BIG = make_pod("big").requests(cpu="3")


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster.from_files(SHOP)


def answers(cluster: Cluster) -> dict[str, Result]:
    return {
        "Explanation": cluster.explain("shop/search-indexer"),
        "PendingPods": cluster.pending(),
        "Placement": cluster.place(),
        "Capacity": cluster.capacity("shop/checkout-canary", most=20),
        "WhatIf": cluster.what_if(drain="web-a1"),
        "ReleaseComparison": cluster.compare_releases("1.36"),
        "Plan": Cluster.from_files(PLANNING / "cluster.yaml").plan("free", nodes=2, pool="large"),
        "Simulation": cluster.simulate(),
        "Comparison": cluster.compare({"default": "", "again": ""}),
    }


KINDS = (
    "Explanation",
    "PendingPods",
    "Placement",
    "Capacity",
    "WhatIf",
    "ReleaseComparison",
    "Plan",
    "Simulation",
    "Comparison",
)


@pytest.fixture(scope="module")
def answered(cluster: Cluster) -> dict[str, Result]:
    return answers(cluster)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_the_document_of_the_command(kind: str, answered: dict[str, Result]) -> None:
    document = answered[kind].to_dict()
    assert document["kind"] == kind
    jsonschema.validate(document, schema_of(kind, {**PARTS, "Plan": (Plan,)}[kind]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_table_is_a_frame(kind: str, library: str, answered: dict[str, Result]) -> None:
    for name, rows in answered[kind].tables().items():
        frame = answered[kind].to_frame(name, library=library)
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == results.COLUMNS[name]
        assert len(frame) == len(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_the_page_and_nothing_of_it_leaks(kind: str, answered: dict[str, Result]) -> None:
    shown = answered[kind]._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ')
    assert shown.count("<") == 2  # the frame alone: all of the page is in its attribute
    assert "&lt;!DOCTYPE html&gt;" in shown


def test_a_table_that_there_is_not_is_named() -> None:
    with pytest.raises(UserError, match="no table 'rows'; there are nodes"):
        Cluster(nodes=[make_node("n")]).explain(BIG).to_frame("rows")


def test_without_either_library_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="neither is installed"):
        Cluster(nodes=[make_node("n")]).explain(BIG).to_frame()


def test_live_snapshot_and_files_have_the_same_answers(tmp_path: Path) -> None:
    with fronted(shop()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        live = Cluster.from_kubeconfig(str(tmp_path / "kubeconfig"))
    assert any("scheduler configuration: the defaults" in note for note in live.notes)
    live.save(tmp_path / "cluster.json.gz")
    snapshot = Cluster.from_snapshot(tmp_path / "cluster.json.gz")
    assert live.pending().causes == snapshot.pending().causes == {"Insufficient cpu": 1}
    assert live.place().to_dict() == snapshot.place().to_dict()
    told = CliRunner().invoke(main, ["place", "-f", str(tmp_path / "cluster.json.gz"), "-o", "json"])
    assert told.exit_code == 0
    assert all(node in told.stdout for node in live.place().nodes.values())


def test_snapshot_that_is_asked_with_another_configuration_does_not_claim_that_of_its_scheduler(tmp_path: Path) -> None:
    Cluster(nodes=[make_node("n")]).save(tmp_path / "cluster.json.gz")
    assert Cluster.from_snapshot(tmp_path / "cluster.json.gz").notes
    own = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    assert not Cluster.from_snapshot(tmp_path / "cluster.json.gz", config=own).notes


def test_questions_change_nothing(cluster: Cluster) -> None:
    before = cluster.place().to_dict()
    answers(cluster)
    assert cluster.place().to_dict() == before


def test_a_pod_is_a_name_a_file_a_builder_or_a_manifest(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n")
    cluster = Cluster(nodes=[make_node("n")], pods=[make_pod("there")])
    manifest: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    for pod in ("there", file, BIG, BIG.build(), manifest):
        assert cluster.explain(pod).node == "n"


def test_pods_that_are_placed_together_stand_in_each_others_way() -> None:
    cluster = Cluster(nodes=[make_node("n")])
    found = cluster.place([BIG, make_pod("second").requests(cpu="3")])
    assert found.nodes == {"default/big": "n"}
    assert "Insufficient cpu" in found.waiting["default/second"]


def test_a_scheduled_pod_counts_for_later_questions() -> None:
    cluster = Cluster(nodes=[make_node("n"), make_node("m")])
    node = cluster.schedule(BIG).node
    [row] = cluster.what_if(drain=node).tables()["changes"]
    assert (row["pod"], row["change"], row["from_node"]) == ("default/big", "moved", node)


def test_changes_are_those_of_the_command() -> None:
    cluster = Cluster.from_files(ROOT / "examples" / "placement" / "cluster.yaml")
    web = ROOT / "examples" / "placement" / "web.yaml"
    nodes = [node.name for node in cluster.nodes]
    found = cluster.what_if(apply=web, add=f"2:like={nodes[0]}", lose=nodes[1:3], drain=nodes[3], anew=True)
    assert found.answer.changes == (
        f"with {web}",
        f"add 2 nodes like {nodes[0]}",
        f"lose {nodes[1]}, {nodes[2]}",
        f"drain {nodes[3]}",
    )
    with pytest.raises(UserError, match="no such node"):
        cluster.what_if(drain="nowhere")
    with pytest.raises(UserError, match=r"no such|there is no"):
        cluster.what_if(scale={"deployment/nothing": 3})


def test_a_plan_is_that_of_the_command(tmp_path: Path) -> None:
    pool = CliRunner().invoke(main, ["plan", "pool", *GANG, "--prices", str(PLANNING / "prices.csv"), "-o", "json"])
    fit = CliRunner().invoke(main, ["plan", "fit", "job/train", *GANG, "-o", "json"])
    cluster = Cluster.from_files(PLANNING / "cluster.yaml", PLANNING / "training.yaml")
    for told, found in (
        (pool, cluster.plan("pool", prices=PLANNING / "prices.csv")),
        (fit, cluster.plan("fit", "job/train")),
    ):
        expected = json.loads(told.stdout)
        assert {**found.to_dict(), "observedAt": ""} == {**expected, "observedAt": ""}
        assert found.reaches_goal
        assert len(found.tables()["steps"]) == len(expected["moves"]) + len(expected["placements"])
    assert found.script().startswith("#!/bin/sh\n")


def test_nodes_without_pods_are_free_already() -> None:
    plan = Cluster(nodes=[make_node(f"n{i}") for i in range(3)], pods=[make_pod("waits").requests(cpu="900")])
    found = plan.plan("free", nodes=2)
    assert found.reaches_goal
    assert [row["fate"] for row in found.tables()["nodes_planned"]] == ["freed", "freed"]
    assert found.tables()["steps"] == []


def test_a_plan_that_makes_no_sense_is_refused() -> None:
    cluster = Cluster.from_files(PLANNING / "cluster.yaml")
    for goal, limits, why in (
        ("fly", {}, "Invalid enum value 'fly'"),
        ("free", {"nodes": 0}, r"\$\.nodes"),
        ("free", {"selector": "="}, "expected KEY=VALUE"),
        ("pool", {}, "price list has no types"),
    ):
        with pytest.raises(UserError, match=why):
            cluster.plan(goal, **limits)


def test_a_configuration_is_a_text_or_a_file(tmp_path: Path) -> None:
    text = """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]
    """
    file = tmp_path / "config.yaml"
    file.write_text(text)
    tall = make_pod("tall").requests(cpu="64")
    for config in (text, file):
        assert Cluster(nodes=[make_node("n")], config=config).explain(tall).node == "n"
    with pytest.raises(UserError, match="No such file"):
        Cluster(config=tmp_path / "none.yaml")


def test_feature_gates_are_those_of_kube_scheduler() -> None:
    assert Cluster(feature_gates="GenericWorkload=true").configuration.features.pod_groups
    with pytest.raises(UserError, match="NoSuchGate"):
        Cluster(feature_gates="NoSuchGate=true")


def test_the_promised_names_are_there_and_described_for_type_checkers() -> None:
    stub = Path(str(kubesched.__file__)).with_suffix(".pyi").read_text()
    for name in kubesched.__all__:
        assert hasattr(kubesched, name)
        assert f" {name}" in stub or f"{name}:" in stub
    assert set(kubesched.__all__) <= set(dir(kubesched))
    with pytest.raises(AttributeError, match="'Nothing'"):
        _ = kubesched.Nothing  # type: ignore[attr-defined]


def test_every_public_method_says_what_it_does() -> None:
    for name, method in inspect.getmembers(Cluster, inspect.isfunction):
        assert name.startswith("_") or inspect.getdoc(method), name


def test_an_upgrade_is_compared_with_the_gates_and_the_configuration_of_the_cluster() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n"
    urgent = make_pod("urgent").requests(cpu="4").priority(10)
    full = make_pod("full").requests(cpu="4").on("n1")
    made = Cluster(
        nodes=[make_node("n1").capacity(cpu="4")],
        pods=[full, urgent],
        config=text,
        feature_gates="GangScheduling=true,GenericWorkload=true",
        release="1.36",
    )
    found = made.compare_releases()
    assert not found.is_nothing
    [row] = found.tables()["releases"]
    assert (row["pod"], row["change"], row["has_node"]) == ("default/urgent", "other message", False)
    assert found.answer.refused == ("1.37: the feature gate GangScheduling cannot be set",)
    assert "parallelism" not in {each.setting for each in found.answer.fields}
    with pytest.raises(UserError, match=r"before: expected '1\.36' or '1\.37', got '1\.30'"):
        made.compare_releases("1.30")

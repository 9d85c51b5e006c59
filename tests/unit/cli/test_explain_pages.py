"""The pages of explain at several widths, as they are kept in `pages/`; nothing is ever cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
PAGES = Path(__file__).with_name("pages")
SHOP = str(ROOT / "examples" / "shop")
NAMES = {f"{pool}{i}" for pool in ("web-a", "web-b", "web-c") for i in (1, 2)} | {"data-c1", "gpu-a1", "gpu-b1"}
NAMES |= {"spot-a1", "spot-b1", "spot-c1"}

NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {pool: %s}}, status: {capacity: %s}}\n"
CAPACITY = "{cpu: 4, memory: 8Gi, pods: 110}"
TEMPLATE = "{metadata: {labels: {app: %s}}, spec: {containers: [{name: c, resources: {requests: {cpu: %s}}}]}}"
DEPLOYMENT = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, "
    "spec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: %s}}\n"
)


def run(*arguments: str, columns: int | None = None, stdin: str = "") -> Result:
    environment = {"COLUMNS": str(columns)} if columns else {}
    result = CliRunner().invoke(main, arguments, input=stdin, env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def deployment(name: str, replicas: int, cpu: str) -> str:
    return DEPLOYMENT % (name, replicas, name, TEMPLATE % (name, cpu))


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
@pytest.mark.parametrize("pod", ["checkout-canary", "search-indexer", "recommender-training"])
def test_the_page_is_what_it_was(pod: str, columns: int) -> None:
    shown = run("explain", "-f", SHOP, f"shop/{pod}", columns=columns).stdout
    assert shown == (PAGES / f"{pod}-{columns}.txt").read_text()


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 160, None])
@pytest.mark.parametrize("flag", ["--no-remedies", "--nodes"])
def test_names_and_the_mark_of_the_chosen_node_stay_whole(columns: int | None, flag: str) -> None:
    shown = run("explain", "-f", SHOP, "shop/checkout-canary", flag, columns=columns).stdout
    assert max(map(len, shown.splitlines())) <= (columns or 110)
    assert "<- chosen" in shown
    words = shown.replace(",", " ").split()
    assert set(words) >= NAMES


# -- what can be explained --------------------------------------------------------------------------------------------


def test_a_workload_stands_for_its_next_pod() -> None:
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), deployment("api", 3, "1"), deployment("big", 1, "9")])
    shown = run("explain", "-f", "-", "deployment/api", "deploy/big", stdin=manifest).stdout
    first, second = shown.split("═" * 110)
    assert "It goes to n1, the only node that fits." in first
    assert "Request 5 less cpu: 4 instead of 9" in second


def test_a_workload_that_has_all_its_pods_is_explained_with_one_more() -> None:
    pod = (
        "{apiVersion: v1, kind: Pod, metadata: {name: db-0, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, "
        "name: db, uid: u, controller: true}]}, spec: {nodeName: n1, containers: [{name: c}]}}\n"
    )
    stateful = (
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, "
        "spec: {replicas: 1, selector: {matchLabels: {app: db}}, template: %s}}\n"
    )
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), pod, stateful % (TEMPLATE % ("db", "1"))])
    assert run("explain", "-f", "-", "sts/db", stdin=manifest).stdout.startswith("default/db-1  1 of 1 node fits\n")


def test_the_next_pod_of_a_workload_is_none_of_those_that_it_has() -> None:
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), deployment("api", 1, "1")])
    made = json.loads(run("explain", "-f", "-", "deployment/api", "-o", "json", stdin=manifest).stdout)["pod"]
    owner = made.removeprefix("default/").removesuffix("-0")
    pod = (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {owner}-0, ownerReferences: [{{apiVersion: apps/v1, "
        f"kind: ReplicaSet, name: {owner}, uid: u, controller: true}}]}}, "
        "spec: {nodeName: n1, containers: [{}]}}\n"
    )
    shown = run("explain", "-f", "-", "deployment/api", stdin=f"{manifest}---\n{pod}").stdout
    assert shown.startswith(f"default/{owner}-0-next  1 of 1 node fits")


def test_a_pod_that_does_not_exist_yet_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: c}]}}")
    shown = run("explain", "-f", "-", "--pod-file", str(file), stdin=NODE % ("n1", "web", CAPACITY)).stdout
    assert shown.splitlines()[:2] == ["default/new  1 of 1 node fits", "It goes to n1, the only node that fits."]


def test_an_unknown_workload_is_answered_with_those_that_exist() -> None:
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), deployment("frontend", 1, "1")])
    result = run("explain", "-f", "-", "deployment/frontent", stdin=manifest)
    assert result.exit_code == 2
    assert result.stderr == "there is no Deployment default/frontent; did you mean default/frontend?\n"


def test_place_places_the_pods_that_workloads_lack() -> None:
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), deployment("api", 3, "1")])
    assert run("place", "-f", "-", stdin=manifest).stdout.startswith("3 pending pods on 1 node: 3 placed")


def test_without_a_name_all_pending_pods_are_told_in_groups() -> None:
    manifest = "---\n".join([NODE % ("n1", "web", CAPACITY), deployment("api", 9, "2"), deployment("big", 2, "9")])
    lines = [line.strip() for line in run("explain", "-f", "-", stdin=manifest).stdout.splitlines()]
    assert lines[0] == "11 pending pods on 1 node: 2 would find a node now, 9 would not"
    assert "7 pods of default/api: Insufficient cpu" in lines
    assert "- 4 more nodes of pool web would place all of them." in lines
    assert "2 pods of default/big: Insufficient cpu" in lines


def test_a_namespace_alone_is_a_filter() -> None:
    assert "shop/" not in run("explain", "-f", SHOP, "-n", "batch").stdout
    assert "batch/report-yearly" in run("explain", "-f", SHOP, "-n", "batch").stdout
    assert run("explain", "-f", SHOP, "-n", "default").stdout == "No pod waits for a node.\n"


# -- for programs -----------------------------------------------------------------------------------------------------


def test_json_and_yaml_have_the_same_document() -> None:
    document = json.loads(run("explain", "-f", SHOP, "shop/search-indexer", "-o", "json").stdout)
    assert (document["apiVersion"], document["kind"]) == ("kubesched.dev/v1alpha1", "Explanation")
    assert "currentNode" not in document, "a field without a value is left out"
    assert document["nearestMisses"][0] == {
        "node": "spot-c1",
        "text": "lacks 7 cpu",
        "lacking": [{"resource": "cpu", "amount": "7"}],
        "plugins": ["NodeResourcesFit"],
    }
    less = next(found for found in document["remedies"]["found"] if found["steps"][0]["sort"] == "requestLess")
    assert less["changes"][0]["patch"] == [
        {"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "5"}
    ]
    assert yaml.safe_load(run("explain", "-f", SHOP, "shop/search-indexer", "-o", "yaml").stdout) == document


def test_several_answers_are_a_list() -> None:
    document = json.loads(
        run("explain", "-f", SHOP, "shop/search-indexer", "shop/checkout-canary", "-o", "json").stdout
    )
    assert document["kind"] == "ExplanationList"
    assert [item["pod"] for item in document["items"]] == ["shop/search-indexer", "shop/checkout-canary"]


def test_all_pending_pods_are_one_document() -> None:
    document = json.loads(run("explain", "-f", SHOP, "-o", "json").stdout)
    assert (document["kind"], len(document["placed"]), len(document["groups"])) == ("PendingPods", 3, 3)

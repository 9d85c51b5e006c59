from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched import __version__
from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
SHOP = str(ROOT / "examples" / "shop")
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n%d}, status: {capacity: {cpu: %d, memory: 8Gi, pods: 110}}}\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {requests: {cpu: 2}}}]}}\n"


def run(*arguments: str, stdin: str = "") -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def stripped(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


# -- the example ------------------------------------------------------------------------------------------------------


def test_the_example_shows_what_becomes_of_every_pending_pod() -> None:
    result = run("place", "-f", SHOP)
    assert result.exit_code == 0
    found = stripped(result.stdout)
    assert found[0] == "6 pending pods on 12 nodes: 3 placed, 3 not placed"
    assert "shop/checkout-canary 1000 web-c1 668 4 of 12" in found
    text = " ".join(found)
    assert "Preemption would help: spot-a1, by evicting batch/report-1 (priority -10), batch/report-2" in text
    assert "waiting for scheduling gates: [shop.example/books-are-closed]" in text


def test_the_example_explains_the_canary_node_by_node_and_score_by_score() -> None:
    result = run("explain", "-f", SHOP, "--pod", "shop/checkout-canary")
    assert result.exit_code == 0
    found = stripped(result.stdout)
    assert found[:2] == ["shop/checkout-canary 4 of 12 nodes fit", "It goes to web-c1, the best of those that fit."]
    assert "1 web-c2 were unschedulable (NodeUnschedulable)" in found
    assert "also InterPodAffinity: didn't match pod anti-affinity rules" in found
    assert "4 spot-b1, spot-c1, web-b2, web-c1 fit" in found
    assert any(re.fullmatch(r"web-c1 300 200 \d+ \d+ \d+ 0 \d+ <- chosen", line) for line in found)


def test_the_example_explains_whom_the_indexer_would_push_aside() -> None:
    found = stripped(run("explain", "-f", SHOP, "--pod", "shop/search-indexer").stdout)
    assert "Preemption would evict 2 pods from spot-a1" in found
    assert "batch/report-1 -10 no disruption budget" in found
    assert "spot-c1 1 shop/catalog-7f4b-3 (100), batch/report-5 (-10)" in found


@pytest.mark.parametrize("command", [("place",), ("explain", "--pod", "shop/checkout-canary")])
def test_nothing_is_wider_than_120_columns(command: tuple[str, ...]) -> None:
    result = run(*command, "-f", SHOP)
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_the_same_can_be_had_as_json() -> None:
    placed = json.loads(run("place", "-f", SHOP, "-o", "json").stdout)
    assert [pod["pod"] for pod in placed["unplaced"]] == [
        "shop/search-indexer",
        "shop/recommender-training",
        "batch/report-yearly",
    ]
    explained = json.loads(run("explain", "-f", SHOP, "-o", "json", "--pod", "shop/checkout-canary").stdout)
    assert (explained["node"], len(explained["verdicts"])) == ("web-c1", 12)


@pytest.mark.parametrize("command", ["place -f examples/shop", "explain -f examples/shop --pod shop/checkout-canary"])
def test_the_readme_shows_what_the_command_prints(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = (ROOT / "README.md").read_text().split(f"$ kubesched {command}\n")[1].split("\n```")[0]
    assert shown.splitlines() == [line.rstrip() for line in run(*command.split()).stdout.splitlines()]


# -- other clusters ---------------------------------------------------------------------------------------------------


def test_a_large_cluster_is_summed_up_unless_all_nodes_are_wanted() -> None:
    manifest = "---\n".join([*(NODE % (i, 1 + i % 2 * 3) for i in range(100)), POD])
    brief = stripped(run("explain", "-f", "-", "--pod", "p", stdin=manifest).stdout)
    assert "50 n1, n11, n13, n15 and 46 more fit" in brief
    assert "50 n0, n10, n12, n14 and 46 more Insufficient cpu (NodeResourcesFit)" in brief
    assert sum("<- chosen" in line or line.endswith("equal") for line in brief) == 15
    full = stripped(run("explain", "-f", "-", "--pod", "p", "--nodes", stdin=manifest).stdout)
    assert sum(line.startswith("n") and " no " in line for line in full) == 50


def test_the_same_seed_draws_the_same_node() -> None:
    manifest = "---\n".join([*(NODE % (i, 4) for i in range(20)), POD])

    def drawn(seed: str) -> str:
        output = run("explain", "-f", "-", "--pod", "p", "--seed", seed, "-o", "json", stdin=manifest).stdout
        return str(json.loads(output)["node"])

    assert drawn("7") == drawn("7")
    assert len({drawn(str(seed)) for seed in range(5)}) > 1


def test_a_configuration_file_changes_the_decision(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n"
    )
    manifest = f"{NODE % (0, 1)}---\n{POD}"
    assert "0 placed" in run("place", "-f", "-", stdin=manifest).stdout
    assert "1 placed" in run("place", "-f", "-", "--config", str(file), stdin=manifest).stdout


def test_what_was_not_read_is_said() -> None:
    manifest = f"{NODE % (0, 4)}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}"
    last = run("place", "-f", "-", stdin=manifest).stdout.splitlines()[-1]
    assert last == "Not read, as scheduling does not look at them: 1 ConfigMap"


# -- mistakes ---------------------------------------------------------------------------------------------------------


def refused(*arguments: str, stdin: str = "") -> list[str]:
    result = run(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr.splitlines()


def test_mistakes_in_manifests_are_a_line_each() -> None:
    manifest = f"{POD.replace('cpu: 2', 'cpu: 2x')}---\n{{apiVersion: v1, kind: Node}}"
    assert refused("place", "-f", "-", stdin=manifest) == [
        "<stdin>: document 1 (Pod default/p): spec.containers[0].resources.requests.cpu: "
        "'2x' is not a quantity such as 100m, 0.5, 2Gi or 1e3",
        "<stdin>: document 2 (Node): metadata.name: Required value: name or generateName is required",
    ]


def test_mistakes_in_the_configuration_are_a_line_each(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 0\n")
    assert refused("place", "-f", SHOP, "--config", str(file)) == [
        f"{file}: parallelism: Invalid value: 0: must be greater than zero"
    ]


def test_an_unknown_plugin_in_the_configuration_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: Nonsense}]}}}]\n"
    )
    (line,) = refused("place", "-f", SHOP, "--config", str(file))
    assert line.startswith(f"{file}: profile 'default-scheduler': there is no plugin named 'Nonsense'")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("shop/checkout-canari", "there is no pod shop/checkout-canari; did you mean shop/checkout-canary?"),
        ("search-indexer", "there is no pod default/search-indexer; did you mean shop/search-indexer?"),
        (
            "zzz/q",
            "there is no pod zzz/q; pending are shop/checkout-canary, shop/postgres-1, shop/search-indexer, "
            "shop/recommender-training, batch/report-yearly, batch/report-6",
        ),
    ],
)
def test_an_unknown_pod_is_answered_with_those_that_exist(name: str, line: str) -> None:
    assert refused("explain", "-f", SHOP, "--pod", name) == [line]


def test_a_pod_of_another_scheduler_is_answered_with_the_profiles_there_are() -> None:
    other = POD.replace("spec: {", "spec: {schedulerName: volcano, ")
    assert refused("explain", "-f", "-", "--pod", "p", stdin=f"{NODE % (1, 1)}---\n{other}") == [
        "pod default/p waits for the scheduler 'volcano'; the configuration has profiles for default-scheduler"
    ]


def test_the_version_is_told() -> None:
    assert run("--version").stdout == f"kubesched, version {__version__}\n"


def test_pods_that_a_quota_keeps_from_being_created_are_told(tmp_path: Path) -> None:
    """No scheduler sees them, so a node that fits is only half of the answer."""
    refused = 'pods "w-1" is forbidden: exceeded quota: q'
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}},
        "status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": refused}]},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"pods": 9}}}
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, workload]}))
    for about in (["deployment/w"], []):
        result = CliRunner().invoke(main, ["explain", "-f", str(file), *about])
        assert result.stderr == f"Deployment default/w: more of its pods are not created: {refused}\n"

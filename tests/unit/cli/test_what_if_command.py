"""`kubesched what-if`, and the options for changes that it shares with simulate, compare and capacity."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.dom import minidom

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOP = str(EXAMPLES / "shop")
CLUSTER, WEB = (str(EXAMPLES / "placement" / name) for name in ("cluster.yaml", "web.yaml"))
ZONE_A = "topology.kubernetes.io/zone=zone-a"


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def asked(*arguments: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("what-if", *arguments, "-o", "json").stdout)
    return found


def test_the_difference_of_a_drain_is_told_with_gpus_budgets_and_zones() -> None:
    text = run("what-if", "-f", SHOP, "--drain", ZONE_A).stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == f"Drain {ZONE_A}"
    assert re.fullmatch(r"\d+ pods moved, 0 placed, 3 waiting, 2 evicted by others, 0 budgets broken", lines[1])
    assert "shop/recommender-1 gpu-a1 gpu-b1" in lines
    assert any(line.startswith("batch/report-3 shop/search-indexer 1000") for line in lines)
    assert any(line.startswith("shop/catalog 3 3 3 1 0 may leave at once") for line in lines)
    assert "zone-b 4 42% → 71% 27% → 49% 50% → 100% 5 → 8" in lines
    assert max(map(len, text.splitlines())) <= 120


def test_every_format_says_the_same() -> None:
    arguments = ("-f", SHOP, "--lose", "gpu-a1", "--add", "1:like=gpu-b1")
    as_json = asked(*arguments)
    assert as_json == yaml.safe_load(run("what-if", *arguments, "-o", "yaml").stdout)
    page = run("what-if", *arguments, "-o", "html").stdout
    for plot in re.findall(r"(?s)<svg.*?</svg>", page):
        minidom.parseString(plot)
    assert "nvidia.com/gpu requested" in page
    assert not re.search(r"https?:|<script[^>]|<link|@import|url\(", page)


def test_several_changes_in_one_go() -> None:
    found = asked("-f", CLUSTER, "--with", WEB, "--add", "1:like=service-a", "--lose", "service-c", "-n", "shop")
    assert found["changes"] == [f"with {WEB}", "add 1 node like service-a", "lose service-c"]
    scaled = asked("-f", CLUSTER, "-f", WEB, "--scale", "deployment/web=9", "-n", "shop")
    assert len(scaled["placed"]) == 3  # type: ignore[arg-type]


def test_a_rolling_upgrade_heeds_its_options() -> None:
    arguments = ("-f", CLUSTER, "-f", WEB, "--upgrade", "pool=service", "--node-startup", "30s", "--pod-startup", "5s")
    found = asked(*arguments, "--surge", "3")
    upgrade = found["upgrade"]
    assert isinstance(upgrade, dict)
    assert {each["began"] for each in upgrade["replaced"]} == {30.0}
    assert upgrade["forced"] == []
    text = run("what-if", *arguments, "--surge", "1").stdout
    assert re.search(r"3 nodes replaced in \d+m", text)
    assert "waited for disruption budgets" in text


def test_another_configuration_or_gate_is_a_change(tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine}]\n"
    )
    found = asked("-f", SHOP, "--with-config", str(policy))
    assert found["changes"] == ["another configuration"]
    waiting = found["waiting"]
    assert isinstance(waiting, list)
    assert {each["reason"] for each in waiting} == {
        "waits for another scheduler: there is no profile 'default-scheduler'"
    }
    assert asked("-f", SHOP, "--with-feature-gates", "DynamicResourceAllocation=true")["waiting"] == []


def test_all_pods_can_be_placed_anew_before_and_after() -> None:
    found = asked("-f", SHOP, "--anew", "--lose", "spot-c1")
    figures = found["before"]
    assert isinstance(figures, dict)
    assert figures["placed"] > 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing is changed: give --drain, --lose, --gone, --add, --scale, --with, --with-config or --upgrade"),
        (("--drain", "web-a9"), "--drain web-a9: there is no such node; did you mean web-a2?"),
        (("--upgrade", "pool=wep"), "--upgrade pool=wep: no node has the label pool with the value 'wep'"),
        (("--lose", "@nowhere"), "nowhere: No such file or directory"),
        (("--with", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
        (("--with-config", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
        (("--with-feature-gates", "Nix=true"), "--with-feature-gates: "),
        (
            ("--scale", "deploy/web=3", "--drain", "web-a1"),
            "--scale default/deployment/web: there is no Deployment default/web",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(arguments: tuple[str, ...], said: str) -> None:
    result = run("what-if", "-f", SHOP, *arguments, code=2)
    assert result.stderr.startswith(said), result.stderr
    assert result.stdout == ""


def test_all_changes_that_cannot_be_read_are_told_at_once() -> None:
    result = run("what-if", "-f", SHOP, "--add", "x", "--scale", "y", "--lose", "@z", code=2)
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["--scale y", "--add x", "z"]


def test_simulate_compare_and_capacity_take_the_same_changes(tmp_path: Path) -> None:
    pod, policy = tmp_path / "pod.yaml", tmp_path / "policy.yaml"
    pod.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p},"
        " spec: {containers: [{name: c, resources: {requests: {cpu: 5}}}]}}"
    )
    policy.write_text(run("config", "defaults").stdout)

    def fit(*changes: str) -> int:
        found = json.loads(run("capacity", "-f", CLUSTER, "--pod", str(pod), *changes, "-o", "json").stdout)
        return int(found["fit"])

    assert (fit(), fit("--lose", "zone=zone-a"), fit("--add", "2:like=service-a")) == (3, 2, 5)
    simulated = json.loads(run("simulate", "-f", CLUSTER, "--with", WEB, "--drain", "service-a", "-o", "json").stdout)
    assert len(simulated["pods"]) == 6
    assert "service-a" not in {story["node"] for story in simulated["pods"]}
    compared = run("compare", "-f", CLUSTER, "--config", str(policy), "--with", WEB).stdout
    assert "All 6 pods are treated alike." in compared


def test_placement_tests_beside_manifests_are_known() -> None:
    folder = str(Path(CLUSTER).parent)
    result = run("what-if", "-f", folder, "--scale", "shop/deployment/web=20")
    assert "unknown kind" not in result.stderr


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOncePod], storageClassName: CLASS, resources: {requests: {storage: 1Gi}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: csi.example.com,
 volumeBindingMode: WaitForFirstConsumer}
"""


@pytest.mark.parametrize(("storage_class", "fit"), [("fast", 24), ("nowhere", 0)])
def test_copies_of_a_stateful_set_have_volumes_of_their_own(tmp_path: Path, storage_class: str, fit: int) -> None:
    file = tmp_path / "db.yaml"
    file.write_text(STATEFUL_SET.replace("CLASS", storage_class))
    found = json.loads(run("capacity", "-f", CLUSTER, "--pod", str(file), "-o", "json").stdout)
    assert found["fit"] == fit

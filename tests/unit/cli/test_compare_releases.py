"""`compare` with two releases and `what-if --upgrade-to`: text, documents, pages, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main

SHOP = str(Path(__file__).parents[3] / "examples" / "shop")
RELEASES = ("--release", "1.36", "--release", "1.37")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [arguments[0], "-f", SHOP, *arguments[1:]])


def test_pods_are_shown_by_the_change_that_treats_them_otherwise() -> None:
    result = run("compare", *RELEASES)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "From Kubernetes 1.36 to 1.37"
    assert lines[1] == "6 pending pods, 15 placed: something changes for 2."
    assert "preemption_said: https://github.com/kubernetes/kubernetes/pull/140180" in lines
    assert "profiles[default-scheduler].plugins.podGroupPostFilter" in result.stdout
    assert "StorageCapacityScoring       off (alpha)   on (beta)" in lines
    assert "equal pods on one node once" in " ".join(lines)


def test_an_upgrade_is_the_same_comparison() -> None:
    upgraded = run("what-if", "--release", "1.36", "--upgrade-to", "1.37")
    assert upgraded.exit_code == 0
    assert upgraded.stdout == run("compare", *RELEASES).stdout


def test_the_cluster_is_changed_first_if_that_is_asked_for() -> None:
    found = json.loads(run("compare", *RELEASES, "--drain", "zone=zone-a", "-o", "json").stdout)
    assert (found["kind"], found["pending"] > 6) == ("ReleaseComparison", True)


def test_gates_that_a_release_refuses_are_told_and_left_out() -> None:
    gates = ("--feature-gates", "SchedulerQueueingHints=true,DRAPrioritizedList=false,StorageCapacityScoring=true")
    for command in (("compare", *RELEASES), ("what-if", "--release", "1.36", "--upgrade-to", "1.37")):
        found = json.loads(run(*command, *gates, "-o", "json").stdout)
        assert found["refused"] == [
            "1.37: the feature gate SchedulerQueueingHints cannot be set",
            "1.37: the feature gate DRAPrioritizedList cannot be set",
        ]
        told = {gate["setting"]: gate.get("after") for gate in found["gates"]}
        assert (told["SchedulerQueueingHints"], told["DRAPrioritizedList"]) == (None, "on, locked (GA)")
    assert (
        "Refused by 1.37: the feature gate DRAPrioritizedList cannot be set" in run("compare", *RELEASES, *gates).stdout
    )


def test_a_configuration_that_one_release_refuses_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    file.write_text(f"{head}profiles: [{{plugins: {{podGroupPostFilter: {{}}}}}}]")
    result = run("compare", *RELEASES, "--config", str(file))
    assert result.exit_code == 0
    assert "profiles[0].plugins.podGroupPostFilter: unknown field" in result.stdout
    assert "pending" not in result.stdout, "no pod was decided upon"


def test_the_page_has_the_groups_with_their_references() -> None:
    page = run("compare", *RELEASES, "-o", "html").stdout
    assert "<h2>A pod that makes room says where, and how many pods have to leave</h2>" in page
    assert '<a href="https://github.com/kubernetes/kubernetes/pull/140180">' in page
    assert "shop/search-indexer" in page
    assert "<h2>Feature gates</h2>" in page


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("compare",), "nothing to compare: give --config, or --release twice"),
        (("compare", *RELEASES, "--release", "1.37"), "expected two releases and at most one --config"),
        (("compare", *RELEASES, "--config", "a", "--config", "b"), "expected two releases and at most one --config"),
        (("compare", *RELEASES[:2] * 2), "expected two different releases"),
        (("compare", *RELEASES, "--feature-gates", "GangScheduling=true"), "depends on features that are disabled"),
        (("what-if", "--upgrade-to", "1.37", "--upgrade", "pool=web"), "--upgrade-to is not combined with"),
    ],
)
def test_what_cannot_be_answered_is_refused(arguments: tuple[str, ...], why: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert why in result.stderr
    assert not result.stdout


def test_one_release_is_that_of_all_configurations(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CliRunner().invoke(main, ["config", "defaults"]).stdout)
    result = run("compare", "--release", "1.37", "--config", str(file))
    assert result.exit_code == 0
    gated = run("compare", "--release", "1.37", "--config", str(file), "--feature-gates", "GangScheduling=false")
    assert gated.exit_code == 2
    assert "unrecognized feature gate: GangScheduling" in gated.stderr

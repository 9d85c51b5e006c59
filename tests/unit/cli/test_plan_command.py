"""`kubesched plan`: outputs, exit codes and mistakes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.json_schema import mistakes

from kubesched.ask.output import schema_of
from kubesched.cli.main import main
from kubesched.cli.plan import searching
from kubesched.planning import solver
from kubesched.planning.plan import Plan

ROOT = Path(__file__).parents[3]
CLUSTER_FILE = ROOT / "examples" / "planning" / "cluster.yaml"
CLUSTER = ("-f", str(CLUSTER_FILE))
PRICES = ROOT / "examples" / "planning" / "prices.csv"


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def test_plan_as_json_is_as_its_schema_says() -> None:
    result = plan("free", *CLUSTER, "--nodes", "2", "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    schema = json.loads((ROOT / "docs" / "schemas" / "plan.json").read_text())
    assert schema == schema_of("Plan", (Plan,))
    assert mistakes(found, schema) == []
    assert found["outcome"] == "found"
    assert found["value"] == found["bound"]["value"] == len(found["moves"])


def test_page_shows_waves_and_maps() -> None:
    result = plan("free", *CLUSTER, "--nodes", "2", "-o", "html")
    assert "<h2>Wave 1</h2>" in result.stdout
    assert "requested, by node" in result.stdout


def test_what_is_beyond_the_cluster_is_a_mistake() -> None:
    result = plan("free", *CLUSTER, "--nodes", "5", "--pool", "gpu")
    assert result.exit_code == 2
    assert "there are only 4 such nodes" in result.stderr


def test_impossible_goal_is_proven_and_ends_with_1() -> None:
    result = plan("free", *CLUSTER, "--nodes", "3", "--pool", "gpu")
    assert result.exit_code == 1
    assert "Impossible: however pods are moved, at most 2 can be emptied" in result.stdout
    assert "nvidia.com/gpu" in result.stdout


def test_too_few_moves_are_impossible() -> None:
    result = plan("free", *CLUSTER, "--nodes", "2", "--pool", "large", "--max-moves", "3")
    assert result.exit_code == 1
    assert "it takes at least 4 moves" in result.stdout


def test_type_without_a_price_is_named(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("type,cpu,memory,price\nlarge,16,64Gi,1\n")
    result = plan("consolidate", *CLUSTER, "--prices", str(prices))
    assert result.exit_code == 2
    assert "no price for the type 'gpu' of node gpu-0" in result.stderr


def test_budgets_that_forbid_everything_are_told(tmp_path: Path) -> None:
    strict = tmp_path / "budget.yaml"
    strict.write_text(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all}\n"
        "spec: {maxUnavailable: 0, selector: {}}\n"
    )
    result = plan("free", *CLUSTER, "-f", str(strict), "--nodes", "1", "--pool", "large")
    assert result.exit_code == 1
    assert "disruption budget default/all allows none" in result.stdout


@pytest.mark.parametrize("share", ["0%", "120", "much"])
def test_share_that_is_none_is_refused(share: str) -> None:
    result = plan("consolidate", *CLUSTER, "--prices", str(PRICES), "--save", share)
    assert result.exit_code == 2
    assert "expected a share such as 20%" in result.stderr


def test_target_that_is_not_there_is_refused() -> None:
    result = plan("fit", "job/nothing", *CLUSTER)
    assert result.exit_code == 2
    assert "there is no Job default/nothing" in result.stderr


def test_first_interrupt_ends_the_search_and_the_second_the_command() -> None:
    with searching(effort=1, seed=0) as search:
        assert search.goes_on()
        signal.raise_signal(signal.SIGINT)
        assert not search.goes_on()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_script_nominates_pods_that_wait_once_new_nodes_are_named() -> None:
    waiting = ("-f", str(CLUSTER_FILE.with_name("training.yaml")))
    result = plan("pool", *CLUSTER, *waiting, "--prices", str(PRICES), "-o", "sh")
    assert result.exit_code == 0, result.output
    lines = result.stdout.partition("STRICT=")[2].splitlines()
    assert lines[1] == "added '2 x gpu' gpu-4 gpu-5"
    assert [line.split()[0] for line in lines[2:]] == ["place", "place", "settle"]
    assert lines[2] == "place default train-0 Job/train gpu-4"


def test_without_the_solver_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "is_installed", lambda: False)
    result = plan("free", *CLUSTER)
    assert result.exit_code == 2
    assert result.stderr.strip() == "plans need the solver HiGHS: from a checkout, pip install '.[plan]'"

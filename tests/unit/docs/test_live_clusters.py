"""The page on live clusters: its commands run, its role is what is read, its options are those there are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.front_server import fronted
from tests.unit.ask.clusters import CONTAINER, shop
from tests.unit.docs.pages import ROOT, blocks

from kubesched.cli.main import main
from kubesched.simulate.kinds import kinds_read
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

PAGE = ROOT / "docs" / "live-clusters.md"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"}, "spec": {"containers": [CONTAINER]}}


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    with fronted(shop()) as front:
        access = kubeconfig(front.url)
        access["contexts"].append({**access["contexts"][0], "name": "prod"})
        write_kubeconfig(tmp_path / "kubeconfig", access)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        lines = [line for text in blocks(PAGE, "console") for line in text.splitlines()]
        assert len(lines) == 7
        for line in lines:
            _, name, *arguments = shlex.split(line)
            assert name == "kubesched"
            result = CliRunner().invoke(main, arguments)
            assert result.exit_code == 0, f"{line}\n{result.output}"


def test_the_role_allows_to_read_all_that_is_read_and_nothing_else() -> None:
    role, _ = yaml.safe_load_all((ROOT / "deploy" / "manifests" / "read-only.yaml").read_text())
    allowed = {
        (group, resource) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
    }
    assert allowed == {(kind.resource.group, kind.resource.plural) for kind in kinds_read(workloads=True).values()}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}

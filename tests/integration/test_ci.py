"""The action, the hook and the examples for CI: their own steps run, and what fails shows on the lines of its case."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from tests.integration.clean_environment import ROOT, copy_sources, environment_for

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, RUN = (
    number for number, step in enumerate(ACTION["runs"]["steps"]) if "run" in step
)  # the first step is another action
FAILING = """\
apiVersion: kubesched.dev/v1alpha1
kind: PlacementTest
metadata: {name: "tall, and: too tall"}
cluster:
  nodes: [{name: small, count: 2, capacity: {cpu: 4, memory: 8Gi}}]
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: tall, labels: {app: tall}}
  spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "9"}}}]}
expect:
- {pods: {app: tall}, pending: false}
"""

pytestmark = [pytest.mark.slow, pytest.mark.live]


def run_step(number: int, tmp_path: Path, action: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step of the action as the runner starts it."""
    step = ACTION["runs"]["steps"][number]
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], value)
        for name, value in step["env"].items()
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    runner = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": str(action),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(
        command, env={**inherited, **environment, **runner}, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What the action's own step installs from its checkout, and that checkout. What is required is there already."""
    folder = tmp_path_factory.mktemp("action")
    checkout = copy_sources(folder / "checkout")
    shutil.copytree(ROOT / "tools", checkout / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    environment = environment_for(folder / "kubesched", "kubesched", "hatchling")
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in offline.items():
            patch.setenv(name, value)
        done = run_step(INSTALL, folder, checkout)
    assert done.returncode == 0, done.stderr
    return environment, checkout


def run_action(tmp_path: Path, installed: tuple[Path, Path], **inputs: str) -> subprocess.CompletedProcess[str]:
    """The step that runs the tests."""
    environment, checkout = installed
    (tmp_path / "kubesched").symlink_to(environment)
    return run_step(RUN, tmp_path, checkout, **inputs)


def test_what_fails_is_annotated_and_in_junit_and_sarif(tmp_path: Path, installed: tuple[Path, Path]) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "tall.yaml").write_text(FAILING)
    done = run_action(tmp_path, installed, tests="cases")
    assert done.returncode == 1, done.stderr
    line = FAILING.splitlines().index("expect:") + 2
    begin = f"::error file=cases/tall.yaml,line={line},title=tall%2C and%3A too tall::expected%3A"
    assert done.stdout.startswith(begin.replace("expected%3A", "expected:"))
    assert "Insufficient cpu" in done.stdout
    assert done.stdout.count("\n") == 1
    [result] = json.loads((tmp_path / "placement.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("cases/tall.yaml", line)
    suites = ElementTree.parse(tmp_path / "placement-junit.xml").getroot()
    assert len(list(suites.iter("failure"))) == 1
    assert (tmp_path / "output").read_text() == "failed=1\n"


def test_what_holds_is_silent(tmp_path: Path, installed: tuple[Path, Path]) -> None:
    done = run_action(tmp_path, installed, tests=str(ROOT / "examples" / "placement" / "tests"))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((tmp_path / "placement.sarif").read_text())["runs"][0]["results"] == []


def test_a_case_that_cannot_be_read_ends_the_step(tmp_path: Path, installed: tuple[Path, Path]) -> None:
    (tmp_path / "broken.yaml").write_text(FAILING.replace("pending:", "pendign:"))
    done = run_action(tmp_path, installed, tests="broken.yaml")
    assert done.returncode == 2
    assert "pendign" in done.stderr


def test_the_hook_runs_what_is_installed() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    name, *arguments = shlex.split(hook["entry"])
    command = [str(Path(sys.executable).with_name(name)), *arguments, str(ROOT / "examples" / "placement" / "tests")]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert re.search(hook["files"], "tests/placement/web.yaml")


def test_the_hook_of_argo_cd_runs_each_case_of_its_config_map_once(tmp_path: Path) -> None:
    argo = yaml.safe_load((ROOT / "examples" / "ci" / "argocd-presync.yaml").read_text())
    container = argo["spec"]["template"]["spec"]["containers"][0]
    [mounted] = container["volumeMounts"]
    volume, files = tmp_path / "tests", tmp_path / "tests" / "..2026_11_18"
    files.mkdir(parents=True)  # as kubelet makes it
    (volume / "..data").symlink_to(files.name)
    placement = ROOT / "examples" / "placement"
    cases = {f"{file.stem}-test.yaml": file.read_text().replace("../", "") for file in placement.glob("tests/*.yaml")}
    for name, text in (cases | {file.name: file.read_text() for file in placement.glob("*.yaml")}).items():
        (files / name).write_text(text)
        (volume / name).symlink_to(f"..data/{name}")
    name, *arguments = (str(volume) if word == mounted["mountPath"] else word for word in container["command"])
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "3 cases: 3 passed" in done.stdout


def test_the_examples_call_what_there_is() -> None:
    gitlab = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab-ci.yml").read_text())["placement"]
    github = yaml.safe_load((ROOT / "examples" / "ci" / "github.yaml").read_text())
    argo = yaml.safe_load((ROOT / "examples" / "ci" / "argocd-presync.yaml").read_text())
    [used] = [step["with"] for step in github["jobs"]["placement"]["steps"] if "kubesched" in step["uses"]]
    assert set(used) <= set(ACTION["inputs"])
    [line] = gitlab["script"]
    container = argo["spec"]["template"]["spec"]["containers"][0]
    for arguments in (shlex.split(line), container["command"]):
        command = [str(Path(sys.executable).with_name(arguments[0])), arguments[1], "--help"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert told.returncode == 0
        assert all(option in told.stdout for option in arguments if option.startswith("--"))

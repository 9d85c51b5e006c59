"""`kubesched plugin`: a new package works as it is written, and the list has what is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.plugins.registry import in_tree


def kubesched(*arguments: str, cwd: Path, fails: bool = False) -> str:
    command = [sys.executable, "-m", "kubesched", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    assert "Try next" in kubesched("plugin", "new", "RoomyNodes", cwd=folder)
    return folder / "roomy-nodes"


def test_the_tests_of_a_new_package_pass(package: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_new_package_is_typed(package: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "src", "tests"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_its_configuration_enables_it_once_it_is_installed(package: Path) -> None:
    """Installed as far as Python can tell: its entry point is beside its module on the path."""
    source = package / "src"
    info = source / "roomy_nodes-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: roomy-nodes\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[kubesched.plugins]\nroomy-nodes = roomy_nodes.plugin:RoomyNodes\n")
    environment = {**os.environ, "PYTHONPATH": str(source)}
    for arguments, words in (
        (["config", "check", "scheduler.yaml"], "scheduler.yaml: OK"),
        (["plugin", "list"], "roomy-nodes 0.1.0"),
    ):
        command = [sys.executable, "-m", "kubesched", *arguments]
        done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, timeout=120)
        assert words in done.stdout, done.stdout + done.stderr


def test_nothing_is_overwritten_and_names_are_checked(package: Path) -> None:
    before = (package / "README.md").read_text()
    told = kubesched("plugin", "new", "RoomyNodes", cwd=package.parent, fails=True)
    assert told == "roomy-nodes: not empty; nothing was written\n"
    assert (package / "README.md").read_text() == before
    assert "such as QuietNodes" in kubesched("plugin", "new", "roomy nodes", cwd=package.parent, fails=True)
    assert "already" in kubesched("plugin", "new", "NodeName", cwd=package.parent, fails=True)


def test_the_list_has_every_plugin_that_comes_with_kubesched(tmp_path: Path) -> None:
    document = json.loads(kubesched("plugin", "list", "-o", "json", cwd=tmp_path))
    listed = {each["name"]: each for each in document["items"]}
    assert listed.keys() >= set(in_tree())
    assert listed["NodePorts"]["points"] == ["preFilter", "filter"]
    assert listed["NodePorts"]["origin"] == "kubesched"

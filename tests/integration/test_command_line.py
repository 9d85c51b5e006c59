"""The commands as processes: what they load, and under which other names they are called."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

from click.testing import CliRunner

from kubesched import __version__
from kubesched.api.release import NEWEST, V1_36, V1_37
from kubesched.cli.main import main

ROOT = Path(__file__).parents[2]


LIGHT = ["kubesched.api", "kubesched.api.errors", "kubesched.cli", "kubesched.cli.input", "kubesched.cli.main"]


def loaded_by(*arguments: str) -> list[str]:
    """The modules of kubesched that a command has imported when it ends, and numpy."""
    asked = (
        "import sys\n"
        "from kubesched.cli.main import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('kubesched.') or name == 'numpy'))"
    )
    shown = subprocess.run([sys.executable, "-c", asked, *arguments], capture_output=True, text=True, check=True).stdout
    return shown.splitlines()[-1].split()


def test_help_loads_no_command() -> None:
    assert loaded_by("--help") == LIGHT


def test_version_loads_neither_the_engine_nor_the_questions() -> None:
    modules = ["api.release", "ask", "ask.output", "ask.version_answer", "cli.grid", "cli.printing", "cli.version"]
    assert loaded_by("version") == sorted([*LIGHT, *(f"kubesched.{module}" for module in modules)])


def test_explaining_files_loads_nothing_that_talks_to_a_cluster_or_makes_documents(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: c, image: x}]}}"
    file.write_text("{apiVersion: v1, kind: Node, metadata: {name: node}}\n---\n" + pod)
    loaded = loaded_by("explain", "-f", str(file), "pod")
    assert "kubesched.ask.explain" in loaded
    needless = {"kubesched.kube.transport", "kubesched.ask.answers", "kubesched.ask.html", "kubesched.ask.what_if"}
    assert needless.isdisjoint(loaded)


def test_only_pages_of_html_import_what_makes_them() -> None:
    code = (
        "import sys; from kubesched.cli import compare, explain, simulate, what_if; sys.exit('jinja2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def installed(script: str, *arguments: str) -> str:
    """What an executable of the package prints."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[script].partition(":")
    start = f"import sys; sys.argv[0] = {script!r}; from {module} import {function}; {function}()"
    command = [sys.executable, "-c", start, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_kubectl_completes_the_plugin() -> None:
    shown = installed("kubectl_complete-sched", "place", "--reque").splitlines()
    assert shown[0].startswith("--request-timeout\t")
    assert shown[-1] == ":4"
    assert installed("kubectl_complete-sched", "place", "-f", "").splitlines() == [":0"]


def test_the_plugin_for_kubectl_is_the_same_command() -> None:
    shown = installed("kubectl-sched", "version", "-o", "json")
    assert json.loads(shown) == {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Version",
        "version": __version__,
        "kubernetes": f"v{NEWEST.version}",
        "python": platform.python_version(),
        "releases": [f"v{V1_37.version}", f"v{V1_36.version}"],
    }
    assert (
        CliRunner()
        .invoke(main, ["version"])
        .stdout.startswith(f"kubesched {__version__}, as Kubernetes v{NEWEST.version}")
    )


def test_kube_scheduler_by_name_passes_all_flags_on(tmp_path: Path) -> None:
    spy = tmp_path / "kubesched"
    spy.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    spy.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    flags = ["--config=/etc/a file.yaml", "-v", "2"]
    script = ROOT / "deploy" / "kube-scheduler"
    result = subprocess.run([script, *flags], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["run", *flags]

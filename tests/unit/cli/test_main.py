"""The list of commands is shown at once, and says of each what the command says of itself."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kubesched import __version__
from kubesched.api.kinds import RELEASE
from kubesched.cli.main import COMMANDS, main

_WHOLE = 1000
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", COMMANDS)
def test_line_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert COMMANDS[name] == command.get_short_help_str(limit=_WHOLE)


def test_help_has_every_command_with_its_whole_sentence() -> None:
    shown = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence}" in shown


def test_help_loads_no_command() -> None:
    asked = (
        "import sys, click\n"
        "from kubesched.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if name.startswith('kubesched.') or name == 'numpy'))"
    )
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    light = ["kubesched.api", "kubesched.api.errors", "kubesched.cli", "kubesched.cli.input", "kubesched.cli.main"]
    assert shown.splitlines()[-1] == str([*light, "kubesched.cli.suggesting"])


def test_image_without_the_sandbox_says_so_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("kubesched.sandbox", "kubesched.cli.sandbox"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubesched.sandbox", None)
    result = CliRunner().invoke(main, ["sandbox", "--nodes", "3"])
    assert result.exit_code == 2
    assert result.stderr == "sandbox: this image has the scheduler without the sandbox; use the wheel\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["simulat"], "No such command 'simulat'. Did you mean simulate?"),
        (["config", "chek"], "No such command 'chek'. Did you mean check?"),
        (["zzz"], "No such command 'zzz'."),
        (["place", "--kubeconfg", "x"], "Did you mean one of: '--config', '--kubeconfig'?"),
    ],
)
def test_what_is_misspelt_is_refused_with_what_may_have_been_meant(wrong: list[str], said: str) -> None:
    result = CliRunner().invoke(main, wrong)
    assert result.exit_code == 2
    assert said in result.stderr


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last of the words."""
    *before, word = words
    return [item.value for item in ShellComplete(main, {}, "kubesched", "").get_completions(before, word)]


def test_commands_options_and_values_are_completed() -> None:
    assert completed("si") == ["simulate"]
    assert completed("place", "--kub") == ["--kubeconfig"]
    assert completed("place", "-o", "") == ["text", "json", "yaml"]
    assert completed("run", "--leader-elect-res") == [
        f"--leader-elect-{name}" for name in ("resource-lock", "resource-name", "resource-namespace")
    ]


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
        "kubernetes": RELEASE,
        "python": platform.python_version(),
    }
    assert CliRunner().invoke(main, ["version"]).stdout.startswith(f"kubesched {__version__}, as Kubernetes {RELEASE}")

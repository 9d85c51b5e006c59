"""The list of commands is shown at once, and says of each what the command says of itself."""

from __future__ import annotations

import sys

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kubesched.cli.main import COMMANDS, main

_WHOLE = 1000


@pytest.mark.parametrize("name", COMMANDS)
def test_line_of_a_command_is_the_first_sentence_of_its_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert COMMANDS[name] == command.get_short_help_str(limit=_WHOLE)


def test_help_has_every_command_with_its_whole_sentence() -> None:
    shown = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    for name, sentence in COMMANDS.items():
        assert f"{name} {sentence}" in shown


class _WithoutTheSandbox:
    """A finder by whose word there is no such package."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "kubesched_sandbox":
            raise ModuleNotFoundError(name=name)


def test_without_the_sandbox_installed_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kubesched_sandbox")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_WithoutTheSandbox(), *sys.meta_path])
    result = CliRunner().invoke(main, ["sandbox", "--nodes", "3"])
    assert result.exit_code == 2
    assert result.stderr == "sandbox: needs the package kubesched-sandbox beside kubesched\n"


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
    assert completed("place", "-o", "") == ["text", "json", "yaml", "html"]
    assert completed("run", "--leader-elect-res") == [
        f"--leader-elect-{name}" for name in ("resource-lock", "resource-name", "resource-namespace")
    ]

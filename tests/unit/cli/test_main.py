"""The list of commands is shown at once, and says of each what the command says of itself."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
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


def test_help_loads_no_command() -> None:
    asked = (
        "import sys, click\n"
        "from kubesched.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if name.startswith('kubesched.') or name == 'numpy'))"
    )
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    light = ["kubesched.api", "kubesched.api.errors", "kubesched.cli", "kubesched.cli.input", "kubesched.cli.main"]
    assert shown.splitlines()[-1] == str(light)


def test_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(main, ["simulat"])
    assert result.exit_code == 2
    assert "No such command 'simulat'" in result.stderr

from __future__ import annotations

import io
import json

import pytest

from kubesched.daemon import run as daemon
from kubesched.daemon.options import Options
from kubesched.daemon.run import options_or_exit_code


def run(*arguments: str) -> tuple[Options | int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    result = options_or_exit_code(arguments, "kube-scheduler", out, err)
    return result, out.getvalue(), err.getvalue()


def test_flags_become_options_without_a_word() -> None:
    result, out, err = run("--config=/etc/scheduler.yaml", "-v=2")
    assert isinstance(result, Options)
    assert (result.config, result.v, out, err) == ("/etc/scheduler.yaml", 2, "", "")


def test_mistake_in_a_flag_is_told_in_the_first_line() -> None:
    result, out, err = run("--nonsense")
    assert (result, out) == (1, "")
    assert err == "Error: unknown flag: --nonsense\nAll flags: kube-scheduler --help\n"


def test_misspelt_flag_is_told_with_the_nearest() -> None:
    _, _, err = run("--leader-elct=false")
    assert err.startswith("Error: unknown flag: --leader-elct; did you mean --leader-elect?\n")


def test_argument_that_is_no_flag_is_an_error() -> None:
    result, out, err = run("start", "now")
    assert (result, out) == (1, "")
    assert err == 'Error: "kube-scheduler" does not take any arguments, got ["start" "now"]\n'


def test_help_goes_to_standard_output() -> None:
    for flag in ("--help", "-h"):
        result, out, err = run(flag)
        assert (result, err) == (0, "")
        assert "Leader election flags:" in out


def test_version_names_the_release_whose_behaviour_this_is() -> None:
    result, out, _ = run("--version")
    assert result == 0
    assert out.startswith("Kubernetes v1.37.")


def test_raw_version_has_all_that_is_known() -> None:
    result, out, _ = run("--version=raw")
    assert result == 0
    assert json.loads(out)["minor"] == "37"


def test_version_that_is_given_is_repeated() -> None:
    assert run("--version=v9.9.9")[1] == "Kubernetes v9.9.9\n"


@pytest.mark.parametrize("bug", [ValueError("shapes do not match"), OSError("no such thing"), KeyError("zone")])
def test_mistake_in_the_program_is_not_shown_as_one_of_its_user(
    bug: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: Options) -> None:
        raise bug

    monkeypatch.setattr(daemon, "completed_as_any", broken)
    with pytest.raises(type(bug)):
        daemon.main([])
    assert capsys.readouterr().err == ""

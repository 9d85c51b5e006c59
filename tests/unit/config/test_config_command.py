from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kubesched import config as configuration
from kubesched.api.release import NEWEST
from kubesched.cli.main import main
from kubesched.config.features import Features

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(main, ["config", *arguments], input=stdin)


def test_check_says_ok_and_how_each_profile_differs(tmp_path: Path) -> None:
    file = tmp_path / "sched.yaml"
    profiles = (
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: {disabled: [{name: NodePorts}]}}}]"
    )
    file.write_text(HEADER + profiles)
    result = run("check", str(file))
    assert result.exit_code == 0
    assert result.output == f"{file}: OK\n  a: default plugins\n  b: without NodePorts\n"


def test_check_prints_a_line_per_mistake_and_exits_with_2() -> None:
    result = run("check", "-", stdin=HEADER + "parallelism: 0\npodInitialBackoffSeconds: 0\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "<stdin>: parallelism: Invalid value: 0: must be greater than zero",
        "<stdin>: podInitialBackoffSeconds: Invalid value: 0: must be greater than zero",
    ]


def test_check_prints_the_completed_configuration_on_request() -> None:
    result = run("check", "-", "-o", "json", stdin=HEADER)
    assert json.loads(result.stdout) == configuration.to_plain(configuration.default(Features.of({}, NEWEST)))


def test_a_missing_file_is_a_line_not_a_traceback() -> None:
    result = run("check", "no/such/file.yaml")
    assert (result.exit_code, result.stderr) == (2, "no/such/file.yaml: No such file or directory\n")


def test_bytes_that_are_no_text_are_refused() -> None:
    result = run("check", "-", stdin=b"\xff\xfe")
    assert (result.exit_code, result.stderr) == (2, "<stdin>: not UTF-8 text\n")


def test_defaults_can_be_loaded_again() -> None:
    result = run("defaults")
    assert result.exit_code == 0
    newest = Features.of({}, NEWEST)
    assert configuration.load(result.stdout, features=newest) == configuration.default(newest)


def test_convert_policy_prints_a_configuration_and_remarks_aside() -> None:
    result = run("convert-policy", "-", stdin='{"apiVersion": "v1", "kind": "Policy"}')
    assert result.exit_code == 0
    assert configuration.load(result.stdout).profiles[0].scheduler_name == "default-scheduler"
    assert result.stderr.startswith("<stdin>: note: ")


def test_convert_policy_names_what_it_cannot_translate() -> None:
    text = '{"apiVersion": "v1", "kind": "Policy", "predicates": [{"name": "Nonsense"}]}'
    result = run("convert-policy", "-", stdin=text)
    assert result.exit_code == 2
    assert result.stderr == '<stdin>: predicates[0].name: unknown predicate "Nonsense"\n'

"""Every command tells a mistake in its input in a line, and ends with exit code 2."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

sandbox_command = import_module("kubesched_sandbox.cli")
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}\n"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

COMMANDS = {
    "simulate": ("simulate", "-f", "FILE"),
    "place": ("place", "-f", "FILE"),
    "explain": ("explain", "-f", "FILE", "--pod", "p"),
    "compare": ("compare", "-f", "FILE", "--config", "config.yaml"),
    "capacity": ("capacity", "-f", "node.yaml", "--pod", "FILE"),
    "policy": ("simulate", "-f", "node.yaml", "-f", "pod.yaml", "--config", "FILE"),
    "config check": ("config", "check", "FILE"),
    "config convert-policy": ("config", "convert-policy", "FILE"),
    "replay": ("replay", "FILE"),
    "sandbox": ("sandbox", "--node-file", "FILE", "--for", "0"),
}
BROKEN: dict[str, bytes] = {
    "empty": b"",
    "only separators": b"---\n---\n",
    "binary": b"\x89PNG\xff\xfe",
    "control characters": b"kind: Pod\nmetadata: {name: \x7f}\n",
    "text": b"just some text\n",
    "bad yaml": b"a: [1,\nb: }",
    "truncated json": b'{"apiVersion": "v1", "kind": "Pod",',
    "a list": b"[1, 2, 3]",
    "of another kind": b"{apiVersion: v1, kind: Secret, metadata: {name: x}}",
    "nested without end": b"[" * 100_000,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("node.yaml", NODE), ("pod.yaml", POD), ("config.yaml", CONFIG)):
        Path(name).write_text(text)


def lines(*arguments: str) -> list[str]:
    """What is said on standard error; nothing is printed otherwise."""
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr.splitlines()


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("command", COMMANDS)
def test_file_that_is_not_what_it_should_be_is_refused(command: str, broken: str) -> None:
    Path("broken.yaml").write_bytes(BROKEN[broken])
    said = lines(*(argument.replace("FILE", "broken.yaml") for argument in COMMANDS[command]))
    assert said
    assert all(line.startswith("broken.yaml: ") for line in said)


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_file_is_refused(command: str) -> None:
    said = lines(*(argument.replace("FILE", "missing.yaml") for argument in COMMANDS[command]))
    assert said == ["missing.yaml: No such file or directory"]


@pytest.mark.parametrize("command", COMMANDS)
def test_directory_without_manifests_is_refused(command: str) -> None:
    Path("folder").mkdir()
    [said] = lines(*(argument.replace("FILE", "folder") for argument in COMMANDS[command]))
    assert said in ("folder: Is a directory", "folder: no manifests in this directory (looked for .yaml, .yml, .json)")


def test_name_that_is_empty_is_not_the_current_directory() -> None:
    assert lines("simulate", "-f", "") == ["'': No such file or directory"]


def test_input_without_anything_to_schedule_says_what_it_is_instead() -> None:
    Path("secret.yaml").write_bytes(BROKEN["of another kind"])
    said = lines("simulate", "-f", "secret.yaml")
    assert said == ["secret.yaml: nothing that scheduling looks at, only 1 Secret"]


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("kind: Node\nmetadata: 3", "document 1: metadata: expected a mapping, got 3"),
        ("kind: Node\nspec: {taints: 3}", "document 1: spec.taints: expected a list, got 3"),
        ("kind: Node\ncount: many", "document 1: count: expected how many there are, got 'many'"),
        ("kind: Node\ncount: -1", "document 1: count: expected how many there are, got -1"),
        ("kind: List\nitems: 3", "document 1: expected a Node"),
        ("kind: Node\n---\nkind: Node", "there are 2 nodes named 'node'"),
        ("kind: Node\nmetadata: {name: UPPER}", 'Node "UPPER" is invalid: metadata.name: Invalid value: "UPPER": '),
        (
            "kind: Node\nstatus: {capacity: {cpu: lots}}",
            'Node in version "v1" cannot be handled as a Node: quantities must match the regular ',
        ),
    ],
)
def test_nodes_that_cannot_be_are_refused_by_the_sandbox(manifest: str, problem: str) -> None:
    Path("nodes.yaml").write_text(manifest)
    [said] = lines("sandbox", "--node-file", "nodes.yaml", "--for", "0")
    assert said.startswith(f"nodes.yaml: {problem}")


def test_places_that_the_sandbox_cannot_write_to_are_named() -> None:
    Path("folder").mkdir()
    assert lines("sandbox", "--for", "0", "--data-dir", "node.yaml") == ["node.yaml: File exists"]
    assert lines("sandbox", "--for", "0", "--kubeconfig", "folder") == [f"{Path('folder').resolve()}: Is a directory"]


def test_data_directory_that_is_no_database_is_named() -> None:
    Path("data").mkdir()
    Path("data/kubesched.db").write_text("these are my notes" * 1000)
    [said] = lines("sandbox", "--for", "0", "--data-dir", "data")
    assert said == "the data directory data cannot be opened: file is not a database"


def test_mistake_in_the_program_is_not_shown_as_one_of_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(2, "No such file or directory", "node.yaml")

    monkeypatch.setattr(sandbox_command, "_until_the_end", broken)
    result = CliRunner().invoke(main, ["sandbox", "--for", "0"])
    assert isinstance(result.exception, OSError)


@pytest.mark.parametrize("command", ["simulate", "place", "explain", "compare", "capacity", "replay", "sandbox"])
def test_unknown_option_is_named(command: str) -> None:
    assert lines(command, "--bogus")[-1].startswith("Error: No such option '--bogus'.")


@pytest.mark.parametrize(("command", "known"), [("simulate", "'json', 'yaml', 'html'"), ("replay", "'json', 'yaml'")])
def test_unknown_format_is_named_with_those_that_there_are(command: str, known: str) -> None:
    said = lines(command, *(["-f"] if command == "simulate" else []), "node.yaml", "-o", "xml")
    assert said[-1] == f"Error: Invalid value for '-o' / '--output': 'xml' is not one of 'text', {known}."


def test_mistakes_of_every_sort_in_manifests_end_a_command_with_code_2() -> None:
    Path("pods.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodSelector: {}, priority: high}}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {priorityClassName: vip, dnsPolicy: Some}}\n"
    )
    assert lines("place", "-f", "pods.yaml") == [
        'pods.yaml: document 1 (Pod default/a): unknown field "spec.nodSelector", did you mean "nodeSelector"?',
        'pods.yaml: document 1 (Pod default/a): spec.priority: expected an integer, got "high"',
        'pods.yaml: document 2 (Pod default/b): spec.dnsPolicy: Unsupported value: "Some": supported values: '
        '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
        "pods.yaml: document 2 (Pod default/b): spec.priorityClassName: no PriorityClass with name vip was found",
    ]


def test_unknown_kind_is_refused_only_when_nothing_else_was_there() -> None:
    Path("odd.yaml").write_text("{apiVersion: v1, kind: Pdo, metadata: {name: a}}\n")
    warning = 'odd.yaml: document 1: unknown kind "Pdo" in v1, did you mean "Pod"?'
    assert lines("place", "-f", "odd.yaml") == [warning]
    Path("cluster.yaml").write_text(f"{NODE}---\n{POD}")
    result = CliRunner().invoke(main, ["place", "-f", "cluster.yaml", "-f", "odd.yaml"])
    assert result.exit_code == 0
    assert f"Warning: {warning}" in result.stderr

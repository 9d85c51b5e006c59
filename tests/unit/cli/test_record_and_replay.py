from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from kubesched.cli.main import main

NIGHTLY = str(Path(__file__).parents[3] / "examples" / "nightly.yaml")


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def recorded(tmp_path: Path) -> Path:
    recording = tmp_path / "night.jsonl"
    assert run("simulate", "-f", NIGHTLY, "--record", str(recording)).exit_code == 0
    return recording


def test_what_was_recorded_is_decided_again(tmp_path: Path) -> None:
    result = run("replay", str(recorded(tmp_path)))
    assert result.exit_code == 0
    assert "replayed, all the same" in result.stdout


def test_what_is_decided_otherwise_is_shown(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    lines = recording.read_text().splitlines()
    at, entry = next((i, json.loads(text)) for i, text in enumerate(lines) if '"what":"decide"' in text)
    lines[at] = json.dumps({**entry, "node": "elsewhere"})
    recording.write_text("\n".join(lines))
    result = run("replay", str(recording))
    assert result.exit_code == 1
    assert "1 difference" in result.stdout
    assert "elsewhere" in result.stdout
    plain = json.loads(run("replay", str(recording), "-o", "json").stdout)
    assert plain["differences"][0]["line"] == at + 1


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("{}\n")
    result = run("replay", str(other))
    assert result.exit_code == 2
    assert "line 1: expected a header" in result.stderr
    other.write_bytes(b"\xff\xfe")
    assert run("replay", str(other)).exit_code == 2
    assert run("replay", str(tmp_path / "missing")).exit_code == 2


def test_a_recording_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no" / "such")
    result = run("simulate", "-f", NIGHTLY, "--record", nowhere)
    assert (result.exit_code, result.stderr) == (2, f"{nowhere}: No such file or directory\n")


def test_an_earlier_recording_is_kept(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    recording.write_text("precious")
    result = run("simulate", "-f", NIGHTLY, "--record", str(recording))
    assert result.stderr == f"{recording}: kept the earlier recording as {recording}.1\n"
    assert (tmp_path / "night.jsonl.1").read_text() == "precious"
    assert run("replay", str(recording)).exit_code == 0


def test_input_that_is_refused_leaves_the_recording_alone(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    assert run("simulate", "-f", str(tmp_path / "missing"), "--record", str(recording)).exit_code == 2
    assert [file.name for file in tmp_path.iterdir()] == ["night.jsonl"]


def test_file_that_is_no_recording_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text("apiVersion: v1\nkind: Node\n")
    assert f"{file}: line 1: not a recording" in run("replay", str(file)).stderr

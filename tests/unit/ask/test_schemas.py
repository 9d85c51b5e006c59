"""The schemas in docs/schemas are those of the types, and what commands print is as they say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from tests.json_schema import mistakes

from kubesched.ask.answers import PARTS
from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
SHOP = str(ROOT / "examples" / "shop")


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("output_schemas", ROOT / "tools" / "output_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_schemas_are_current() -> None:
    files = {file.name: file.read_text() for file in (ROOT / "docs" / "schemas").glob("*.json")}
    assert files == tool().schemas(), "run python tools/output_schemas.py"


COMMANDS = {
    "Explanation": ["explain", "-f", SHOP, "shop/search-indexer"],
    "ExplanationList": ["explain", "-f", SHOP, "shop/search-indexer", "shop/checkout-canary"],
    "PendingPods": ["explain", "-f", SHOP],
    "Placement": ["place", "-f", SHOP],
    "Simulation": ["simulate", "-f", SHOP],
    "Comparison": ["compare", "-f", SHOP, "--config", "config.yaml"],
    "Capacity": ["capacity", "-f", SHOP, "--pod", "pod.yaml", "--most", "3"],
    "Readiness": ["check", "upgrade", "-f", SHOP, "pool=web"],
    "ReleaseComparison": ["compare", "-f", SHOP, "--release", "1.36", "--release", "1.37"],
    "Replay": ["replay", "recording.jsonl"],
    "TestResults": ["test", str(ROOT / "examples" / "placement" / "tests")],
    "PluginList": ["plugin", "list"],
    "Version": ["version"],
    "WhatIf": ["what-if", "-f", SHOP, "--drain", "zone=zone-a", "--upgrade", "pool=web"],
}


def test_every_kind_is_tried_here_or_with_the_service() -> None:
    assert set(PARTS) == {*COMMANDS, "Fit"}


@pytest.mark.parametrize("kind", COMMANDS)
def test_documents_are_as_their_schemas_say(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    Path("config.yaml").write_text(run(main, ["config", "defaults"]).stdout)
    Path("pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}")
    if kind == "Replay":
        run(main, ["simulate", "-f", SHOP, "--record", "recording.jsonl"])
    result = run(main, [*COMMANDS[kind], "-o", "json"])
    assert result.exit_code == (1 if kind == "Readiness" else 0), result.output
    schema = json.loads((ROOT / "docs" / "schemas" / f"{kind.lower()}.json").read_text())
    document = json.loads(result.stdout)
    assert mistakes(document, schema) == []
    Draft202012Validator(schema).validate(document)
    assert empty_texts(document) == []


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "schemas").glob("*.json")), ids=lambda file: file.name)
def test_schemas_are_valid_json_schema(file: Path) -> None:
    Draft202012Validator.check_schema(json.loads(file.read_text()))


def empty_texts(value: object, path: str = "") -> list[str]:
    """Where in a document an empty text is."""
    if isinstance(value, dict):
        return [found for key, content in value.items() for found in empty_texts(content, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for i, content in enumerate(value) for found in empty_texts(content, f"{path}[{i}]")]
    return [path] if value == "" else []

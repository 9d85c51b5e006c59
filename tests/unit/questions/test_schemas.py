"""The schemas in docs/schemas are those of the types, and what commands print is as they say."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.questions.answers import PARTS

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


def mistakes(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """What in a value is not as its schema says; as much of JSON Schema as the files use."""
    if not schema:
        return []
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} is none of {schema['enum']}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path}: {value!r} is not {schema['const']!r}"]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    if not isinstance(value, kinds.get(schema.get("type", ""), object)):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found: list[str] = []
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        found += [f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        found += [f"{path}: {name} is not described" for name in value if name not in fields and others is None]
        for name, content in value.items():
            found += mistakes(content, fields.get(name, others or {}), f"{path}.{name}")
    if isinstance(value, list):
        for i, content in enumerate(value):
            found += mistakes(content, schema["items"], f"{path}[{i}]")
    return found


COMMANDS = {
    "Explanation": ["explain", "-f", SHOP, "shop/search-indexer"],
    "ExplanationList": ["explain", "-f", SHOP, "shop/search-indexer", "shop/checkout-canary"],
    "PendingPods": ["explain", "-f", SHOP],
    "Placement": ["place", "-f", SHOP],
    "Simulation": ["simulate", "-f", SHOP],
    "Comparison": ["compare", "-f", SHOP, "--config", "config.yaml"],
    "Capacity": ["capacity", "-f", SHOP, "--pod", "pod.yaml", "--most", "3"],
    "Replay": ["replay", "recording.jsonl"],
    "TestResults": ["test", str(ROOT / "examples" / "placement" / "tests")],
    "Version": ["version"],
    "WhatIf": ["what-if", "-f", SHOP, "--drain", "zone=zone-a", "--upgrade", "pool=web"],
}


@pytest.mark.parametrize("kind", PARTS)
def test_documents_are_as_their_schemas_say(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    Path("config.yaml").write_text(run(main, ["config", "defaults"]).stdout)
    Path("pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}")
    if kind == "Replay":
        run(main, ["simulate", "-f", SHOP, "--record", "recording.jsonl"])
    result = run(main, [*COMMANDS[kind], "-o", "json"])
    assert result.exit_code == 0, result.output
    schema = json.loads((ROOT / "docs" / "schemas" / f"{kind.lower()}.json").read_text())
    assert mistakes(json.loads(result.stdout), schema) == []

"""Recorded readings of kube-scheduler v1.36: kubesched accepts, completes and refuses the same files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.parity.config_adapter import read

RECORDINGS = Path(__file__).parent / "golden" / "config"


def recordings() -> list[dict[str, Any]]:
    files = sorted(RECORDINGS.glob("*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def comparable(result: dict[str, Any]) -> Any:
    """What must be equal: all of an accepted configuration, field and kind of errors, the fact of being unreadable."""
    if "defaulted" in result:
        return result["defaulted"]
    if "errors" in result:
        return {tuple(error.split(": ")[:2]) for error in result["errors"]}
    return "unreadable"


@pytest.mark.parametrize("outcome", ["defaulted", "errors", "decodeError"])
def test_files_are_read_as_kube_scheduler_reads_them(outcome: str) -> None:
    cases = [each for each in recordings() if outcome in each["result"]]
    assert cases
    different = [
        each["case"]["id"] for each in cases if comparable(read(each["case"]["text"])) != comparable(each["result"])
    ]
    assert different == []

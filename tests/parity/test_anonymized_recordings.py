"""Recorded clusters under other names: every decision is the same, to the word, once the names are put back."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from tests.parity.adapter import evaluate
from tests.parity.recordings import cases, families

from kubesched.api.kinds import KINDS
from kubesched.ask.sources.anonymize import Anonymizer, anonymize_cluster
from kubesched.ask.sources.reading import ClusterReading, FoundConfiguration

Json = dict[str, Any]
EVERY = 7
"""Of the recordings; which goes round, so that all families have their odd cases looked at."""
_WORD = re.compile(r"(vol-)?n\d+")


def under_other_names(case: Json) -> tuple[Json, Anonymizer]:
    """The case, and what puts its names back."""
    objects: dict[str, list[Any]] = {}
    for obj in case["objects"]:
        if obj["kind"] in KINDS:
            objects.setdefault(obj["kind"], []).append(msgspec.convert(obj, KINDS[obj["kind"]].record))
    settings = case.get("config")
    reading = ClusterReading(
        origin="",
        objects={kind: tuple(records) for kind, records in objects.items()},
        server_version="v1.36.4",
        configuration=FoundConfiguration(json.dumps(settings) if settings else "", ""),
    )
    anonymizer = Anonymizer()
    other = anonymize_cluster(reading, anonymizer)
    renamed = {
        **case,
        "objects": [
            {**msgspec.to_builtins(record), "kind": kind}
            for kind, records in other.objects.items()
            for record in records
        ],
        "pending": [
            "/".join(map(anonymizer.word, key.split("/")))
            for key in case["pending"]
            if all(map(anonymizer.knows, key.split("/")))
        ],
    }
    if settings is not None:
        renamed["config"] = json.loads(other.configuration.text)
    return renamed, anonymizer


def with_names(value: Any, anonymizer: Anonymizer) -> Any:
    """A result, its words replaced by what they stand for."""
    if isinstance(value, dict):
        return {with_names(key, anonymizer): with_names(each, anonymizer) for key, each in value.items()}
    if isinstance(value, list):
        return [with_names(each, anonymizer) for each in value]
    return _WORD.sub(lambda found: anonymizer.original(found[0]), value) if isinstance(value, str) else value


@pytest.mark.recordings
@pytest.mark.parametrize("family", families("decisions"))
def test_decisions_are_the_same_under_other_names(family: str) -> None:
    looked_at = 0
    for number, recording in enumerate(cases("decisions", family)):
        case = recording["case"]
        if number % EVERY or "configError" in recording["result"]:
            continue
        looked_at += 1
        renamed, anonymizer = under_other_names(case)
        before, after = evaluate({**case, "pending": _known(case, anonymizer)}), evaluate(renamed)
        assert with_names(after, anonymizer) == before, case["id"]
    assert looked_at


def _known(case: Json, anonymizer: Anonymizer) -> list[str]:
    return [key for key in case["pending"] if all(map(anonymizer.knows, key.split("/")))]

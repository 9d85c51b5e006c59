"""What `kubesched test -o json` found, for a pull request: annotations on the lines of cases, and SARIF.

kubesched test tests/placement -o json > results.json
python tools/ci_report.py results.json --sarif placement.sarif
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULE = "placement"


class FailedCheck(NamedTuple):
    """One expectation that does not hold, and where its case stands."""

    file: str
    line: int
    case: str
    text: str


def failures(results: dict[str, Any]) -> Iterator[FailedCheck]:
    """All that does not hold, in the order of the results."""
    for case in results["cases"]:
        for check in case["checks"]:
            if not check["holds"]:
                text = "\n".join([f"expected: {check['expected']}", *check["problems"], *check["explanation"]])
                yield FailedCheck(case["file"], line_of(case["file"], case["name"]), case["name"], text)


def line_of(file: str, case: str) -> int:
    """Where the expectations of a case begin, counted from 1; 1 if the file cannot tell."""
    try:
        documents = list(yaml.compose_all(Path(file).read_text(), Loader=yaml.SafeLoader))
    except (OSError, yaml.YAMLError):
        return 1
    for document in documents:
        fields = _fields(document)
        if _fields(fields.get("metadata")).get("name", yaml.ScalarNode("", "")).value == case and "expect" in fields:
            return int(fields["expect"].start_mark.line) + 1
    return 1


def _fields(node: Any) -> dict[str, Any]:
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def annotation(failed: FailedCheck) -> str:
    """A workflow command of GitHub: the text shows on the line."""
    return (
        f"::error file={_property(failed.file)},line={failed.line},title={_property(failed.case)}::{_data(failed.text)}"
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(failed: list[FailedCheck]) -> dict[str, Any]:
    """SARIF 2.1.0, with a result per expectation."""
    results = [
        {
            "ruleId": RULE,
            "level": "error",
            "message": {"text": f"{each.case}: {each.text}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": each.file},
                        "region": {"startLine": each.line},
                    }
                }
            ],
        }
        for each in failed
    ]
    rule = {"id": RULE, "shortDescription": {"text": "Pods land where they have to"}}
    tool = {
        "driver": {"name": "kubesched", "informationUri": "https://github.com/kubesched/kubesched", "rules": [rule]}
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": tool, "results": results}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--sarif", type=Path, help="file to write")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    failed = list(failures(results))
    for each in failed:
        print(annotation(each))
    if options.sarif is not None:
        options.sarif.write_text(json.dumps(sarif(failed), indent=2) + "\n")
    if output := os.environ.get("GITHUB_OUTPUT"):
        with open(output, "a", encoding="utf-8") as file:
            file.write(f"failed={results['failed']}\n")


if __name__ == "__main__":
    main()

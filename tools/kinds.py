"""Write the table of resources from the discovery documents of a Kubernetes release.

    python -m tools.kinds kubernetes/.git v1.36.4   # src/kubesched/api/kinds-1.36.json

Run it from the top of the repository; `git diff` shows what the release changed. Only facts are read: group, version,
kind, plural, scope, short names, categories, verbs and subresources. Of the subresources those are left out that are
connections rather than objects (exec, log, proxy, ...).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.upstream import Release, release_on_command_line

FOLDER = Path("src/kubesched/api")
DISCOVERY = "api/discovery"

ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def main(release: Release) -> None:
    documents = [name for name in release.names(DISCOVERY) if "__v" in name]
    if not documents:
        sys.exit(f"{release.tag} has no discovery documents in {DISCOVERY}")
    rows = [row for name in documents for row in _rows(json.loads(release.read(f"{DISCOVERY}/{name}")))]
    lines = [json.dumps(row) for row in sorted(rows, key=lambda row: (row["group"], row["version"], row["plural"]))]
    table = FOLDER / f"kinds-{'.'.join(map(str, release.minor))}.json"
    table.write_text(f'{{"release": {json.dumps(release.tag)}, "resources": [\n' + ",\n".join(lines) + "\n]}\n")


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    group, _, version = document["groupVersion"].rpartition("/")
    listed = document["resources"]
    return [_row(group, version, entry, listed) for entry in listed if "/" not in entry["name"]]


def _row(group: str, version: str, entry: dict[str, Any], listed: list[dict[str, Any]]) -> dict[str, Any]:
    below = f"{entry['name']}/"
    row = {
        "group": group,
        "version": version,
        "plural": entry["name"],
        "kind": entry["kind"],
        "namespaced": entry["namespaced"],
        "short_names": entry.get("shortNames", []),
        "categories": entry.get("categories", []),
        "subresources": [
            part["name"].removeprefix(below) for part in listed if part["name"].startswith(below) and _is_object(part)
        ],
        "singular": entry["singularName"] if entry["singularName"] != entry["kind"].lower() else "",
        "verbs": entry["verbs"] if sorted(entry["verbs"]) != ALL_VERBS else [],
    }
    return {name: value for name, value in row.items() if value or name in ("group", "namespaced")}


def _is_object(subresource: dict[str, Any]) -> bool:
    return not subresource["kind"].endswith("Options") and not subresource["name"].endswith("/log")


if __name__ == "__main__":
    main(release_on_command_line())

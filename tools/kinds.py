"""Write the table of resources from the discovery documents of a Kubernetes release.

    git -C kubernetes checkout v1.36.4
    python tools/kinds.py v1.36.4 kubernetes/api/discovery > src/kubesched/api/kinds.json

Only facts are read: group, version, kind, plural, scope, short names, categories, verbs and subresources. Of the
subresources those are left out that are connections rather than objects (exec, log, proxy, ...).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def main(release: str, source: str) -> None:
    rows = [row for file in sorted(Path(source).glob("api*__v*.json")) for row in _rows(json.loads(file.read_text()))]
    lines = [json.dumps(row) for row in sorted(rows, key=lambda row: (row["group"], row["version"], row["plural"]))]
    sys.stdout.write(f'{{"release": {json.dumps(release)}, "resources": [\n' + ",\n".join(lines) + "\n]}\n")


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
    main(*sys.argv[1:])

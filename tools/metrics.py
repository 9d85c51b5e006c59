"""Bring the catalogue of metrics up to date with a Kubernetes release.

    python -m tools.metrics kubernetes/.git v1.36.4

Run it from the top of the repository. Type, labels, stability and buckets of every series of kube-scheduler are taken
from upstream's own lists (in the one that is checked by tests there, stability is never behind); group, gate and help
are ours and stay. What is not in the catalogue is printed: measure it, and add a row with a group and a help, or leave
it. The order of labels is that of the catalogue, since upstream's lists sort them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tools.upstream import Release, release_on_command_line

TABLE = Path("src/kubesched/daemon/metrics/catalogue.tsv")

LISTS = (
    "test/instrumentation/documentation/documentation-list.yaml",
    "test/instrumentation/testdata/stable-metrics-list.yaml",
)
COMPONENT = "kube-scheduler"


def main(release: Release) -> None:
    upstream = _series(release)
    _, header, *lines = TABLE.read_text().splitlines()
    names = header.split("\t")
    rows = [dict(zip(names, line.split("\t"))) for line in lines]
    for row in rows:
        facts = upstream.pop(row["name"], None)
        if facts is not None:
            row.update(_facts(facts, row["labels"].split()))
        elif row["group"] != "kubesched":
            print(f"not in upstream's lists: {row['name']}")
    for name, facts in upstream.items():
        if any(place["component"] == COMPONENT for place in facts.get("componentEndpoints", ())):
            print(f"not in the catalogue: {name}")
    table = ["\t".join(row[name] for name in names) for row in rows]
    TABLE.write_text("\n".join((f"# {release.tag}: python -m tools.metrics", header, *table, "")))


def _series(release: Release) -> dict[str, dict[str, Any]]:
    """What is known of each series by its name; the later list goes before the earlier one."""
    found: dict[str, dict[str, Any]] = {}
    for path in LISTS:
        for entry in yaml.safe_load(release.read(path)):
            name = "_".join(filter(None, (entry.get("namespace"), entry.get("subsystem"), entry["name"])))
            found[name] = {**found.get(name, {}), **entry}
    return found


def _facts(entry: dict[str, Any], order: list[str]) -> dict[str, str]:
    labels = entry.get("labels", [])
    return {
        "type": entry["type"].lower(),
        "stability": entry["stabilityLevel"],
        "labels": " ".join(order if set(order) == set(labels) else labels),
        "buckets": " ".join(str(bound) for bound in entry.get("buckets", [])),
    }


if __name__ == "__main__":
    main(release_on_command_line())

"""Every series: type, labels, stability, what it means, and buckets, as catalogue.tsv has them."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple, cast

Kind = Literal["counter", "gauge", "histogram"]


class Series(NamedTuple):
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    stability: str
    help: str
    buckets: tuple[float, ...] = ()
    gate: str = ""
    """The feature gate without which it does not exist."""


def _table() -> dict[str, tuple[Series, ...]]:
    """The series by group. tools/metrics.py keeps the table up to date with upstream's lists."""
    found: dict[str, tuple[Series, ...]] = {}
    text = files(__package__).joinpath("catalogue.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        group, name, kind, stability, labels, buckets, gate, help = line.split("\t")
        bounds = tuple(map(float, buckets.split()))
        series = Series(name, cast(Kind, kind), tuple(labels.split()), stability, help, bounds, gate)
        found[group] = (*found.get(group, ()), series)
    return found


_GROUPS = _table()
SCHEDULER = _GROUPS["scheduler"]
CLIENT = _GROUPS["client"]
PROCESS = _GROUPS["process"]
HEALTH = _GROUPS["health"]
KUBESCHED = _GROUPS["kubesched"]
"""What kube-scheduler does not have."""

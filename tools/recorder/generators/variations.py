"""Golden cases with something changed: parts of objects and steps that are left out, or taken from other cases."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tools.recorder.generators.drawing import Draw, Json

GOLDEN = Path(__file__).parents[3] / "tests/parity/golden"
_KEPT = frozenset(
    (
        *("apiVersion", "kind", "metadata", "name", "namespace", "nodeName", "resourceVersion", "uid"),
        *("key", "operator", "resourceSliceCount", "topologyKey"),
    )
)
"""Fields that say which object it is, or where: another value makes another story of it."""
_IDENTITIES = frozenset(("claimRef", "ownerReferences", "reservedFor", "volumeName", "extendedResourceClaimStatus"))

Place = tuple[str, tuple[str, ...]]
"""The kind of an object, and the names of the fields on the way to a part of it."""


@cache
def _cases(of: str, family: str) -> list[Json]:
    lines = gzip.decompress((GOLDEN / of / f"{family}.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line)["case"] for line in lines]


def families(of: str) -> list[str]:
    return sorted(path.name.removesuffix(".jsonl.gz") for path in (GOLDEN / of).glob("*.jsonl.gz"))


def decision(family: str) -> Callable[[Draw], Json]:
    """A case of the family in which some parts of objects are others."""

    def make(draw: Draw) -> Json:
        case = copy.deepcopy(draw.one(_cases("decisions", family)))
        others = [draw.one(_cases("decisions", family)) for _ in range(6)]
        _change(draw, case["objects"], [obj for other in others for obj in other["objects"]], draw.number(1, 8))
        if draw.chance(0.3):
            case["mode"] = draw.one(("evaluate", "sequence"))
        if "config" not in case and draw.chance(0.1):
            given = [one["config"] for one in _cases("decisions", "config") if "config" in one]
            case["config"] = draw.one(given)
        return {name: value for name, value in case.items() if name != "id"}

    return make


def life(family: str) -> Callable[[Draw], Json]:
    """A life of the family in which some objects are others, and some steps are left out, doubled or swapped."""

    def make(draw: Draw) -> Json:
        case = copy.deepcopy(draw.one(_cases("queue", family)))
        others = [draw.one(_cases("queue", family)) for _ in range(6)]
        created = [step["object"] for step in case["steps"] if "object" in step]
        donors = [obj for other in others for obj in other["objects"]]
        donors += [step["object"] for other in others for step in other["steps"] if "object" in step]
        _change(draw, [*case["objects"], *created], donors, draw.number(0, 5))
        steps: list[Json] = case["steps"]
        for _ in range(draw.number(1, 6)):
            at, to = (draw.number(0, len(steps) - 1) for _ in range(2))
            match draw.one(("drop", "swap", "double", "schedule", "advance")):
                case "drop" if len(steps) > 1:
                    del steps[at]
                case "swap":
                    steps[at], steps[to] = steps[to], steps[at]
                case "double" if steps[at]["op"] != "create":  # no uid comes twice
                    steps.insert(to, copy.deepcopy(steps[at]))
                case "schedule":
                    steps.insert(to, {"op": "schedule"})
                case _:
                    steps.insert(to, {"op": "advance", "seconds": draw.one((0.5, 2, 12, 301))})
        return {name: value for name, value in case.items() if name != "id"}

    return make


def _change(draw: Draw, objects: list[Json], donors: list[Json], times: int) -> None:
    parts: dict[Place, list[Any]] = {}
    for obj in donors:
        for place, holder in _parts(obj):
            parts.setdefault(place, []).append(holder[place[1][-1]])
    for _ in range(times):
        inside = list(_parts(draw.one(objects)))
        if not inside:
            continue
        (kind, path), holder = draw.one(inside)
        if draw.chance(0.2) and path[-1] not in ("spec", "status", "containers", "drivers", "driver", "pool"):
            holder.pop(path[-1], None)
        elif found := parts.get((kind, path)):
            holder[path[-1]] = copy.deepcopy(draw.one(found))


def _parts(obj: Json) -> Iterator[tuple[Place, Json]]:
    """Every field that may be another, with the object that holds it."""
    labels = obj["metadata"].get("labels")
    if labels:
        yield (obj["kind"], ("metadata", "labels")), obj["metadata"]
    waiting: list[tuple[tuple[str, ...], Any]] = [((), {key: obj[key] for key in ("spec", "status") if key in obj})]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(path, one) for one in value]
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name in _KEPT or name in _IDENTITIES:
                    continue
                if path:
                    yield (obj["kind"], (*path, name)), value
                waiting.append(((*path, name), inner))


DECISIONS = {f"varied-{family}": decision(family) for family in families("decisions")}
LIVES = {f"varied-{family}": life(family) for family in families("queue")}

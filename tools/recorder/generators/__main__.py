"""Writes cases: `python -m tools.recorder.generators decisions/wide --seed 1 --count 100 > decisions/wide.jsonl`."""

from __future__ import annotations

import argparse
import json
import sys

from tools.recorder.generators import (
    capacities,
    configurations,
    decisions,
    gates,
    lives,
    novelties,
    supplied_lives,
    tainted_devices,
    variations,
)
from tools.recorder.generators.drawing import Draw

FAMILIES = {
    **{f"config/{name}": make for name, make in configurations.FAMILIES.items()},
    **{f"decisions/{name}": make for name, make in {**decisions.FAMILIES, **novelties.FAMILIES}.items()},
    **{f"decisions/{name}": make for name, make in {**capacities.FAMILIES, **tainted_devices.DECISIONS}.items()},
    **{f"queue/{name}": make for name, make in {**lives.FAMILIES, **supplied_lives.FAMILIES}.items()},
    **{f"queue/{name}": make for name, make in {**tainted_devices.LIVES, **variations.LIVES}.items()},
    **{f"decisions/{name}": make for name, make in {**variations.DECISIONS, **gates.DECISION_FAMILIES}.items()},
    **{f"queue/{name}": make for name, make in gates.LIFE_FAMILIES.items()},
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.generators", description=__doc__)
    parser.add_argument("family", choices=sorted(FAMILIES))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=10)
    given = parser.parse_args()
    name = given.family.split("/")[1]
    for number in range(given.count):
        identity = f"{name}/{given.seed}/{number}"
        case = {"id": identity, **FAMILIES[given.family](Draw(identity))}
        sys.stdout.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()

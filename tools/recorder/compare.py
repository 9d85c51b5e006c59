"""Replays recordings with kubesched and prints each difference: `python -m tools.recorder.compare /tmp/fresh`."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from tests.parity import adapter, comparing, queue_adapter, queue_comparing

SHOWN = 3
"""So many differences of each case."""


def main(folder: Path) -> int:
    found = 0
    for kind, replay, differences in (
        ("decisions", adapter.evaluate, comparing.differences),
        ("queue", queue_adapter.run, queue_comparing.differences),
    ):
        for file in sorted((folder / kind).glob("*.jsonl.gz")):
            recordings = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
            wrong = 0
            for each in recordings:
                different = differences(replay(each["case"]), each["result"])
                wrong += bool(different)
                for line in different[:SHOWN]:
                    print(f"{each['case']['id']}: {line}")
            print(f"{kind}/{file.name}: {len(recordings):,} cases, {wrong:,} different")
            found += wrong
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected the folder that `make record` wrote to")
    sys.exit(main(Path(sys.argv[1])))

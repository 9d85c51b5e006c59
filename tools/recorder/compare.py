"""Replays recordings with kubesched and prints each difference: `python -m tools.recorder.compare /tmp/fresh 1.37`."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.parity import adapter, comparing, config_adapter, queue_adapter, queue_comparing, test_config_recordings

from kubesched.api.release import RELEASES

Json = dict[str, Any]

SHOWN = 3
"""So many differences of each case."""


class Kind(NamedTuple):
    """One kind of recording: what kubesched makes of a case, and where a result is not what was recorded."""

    replay: Callable[[Json, str], Json]
    differences: Callable[[Json, Json], list[str]]


def _config_differences(result: Json, recorded: Json) -> list[str]:
    same = test_config_recordings.comparable(result) == test_config_recordings.comparable(recorded)
    return [] if same else [f"got {result}, recorded {recorded}"]


KINDS = {
    "decisions": Kind(adapter.evaluate, comparing.differences),
    "queue": Kind(queue_adapter.run, queue_comparing.differences),
    "config": Kind(lambda case, release: config_adapter.read(case["text"], release), _config_differences),
}


def main(folder: Path, release: str) -> int:
    found = 0
    for name, kind in KINDS.items():
        for file in sorted((folder / name).glob("*.jsonl.gz")):
            recordings = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
            wrong = 0
            for each in recordings:
                if "panic" in each["result"]:
                    continue  # kube-scheduler broke: there is no answer to agree with
                different = kind.differences(kind.replay(each["case"], release), each["result"])
                wrong += bool(different)
                for line in different[:SHOWN]:
                    print(f"{each['case']['id']}: {line}")
            print(f"{name}/{file.name}: {len(recordings):,} cases, {wrong:,} different")
            found += wrong
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in RELEASES:
        sys.exit(f"expected the folder that `make record` wrote to, and the release: {' or '.join(RELEASES)}")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

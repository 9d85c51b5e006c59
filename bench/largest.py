"""Pods as large as an API server accepts, of every sort, in mixtures and streams: how long other pods wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
from tests.adversary import TRAITS, HostilePod

from bench import clusters
from bench.hostile import Cluster
from kubesched.api.change import Change
from kubesched.api.pod import Pod

STORED_BYTES = 3 << 19
"""What etcd takes for one object, by default."""
SENT_BYTES = 3 << 20
"""What the API server reads for one object."""
_TRIED_SIZE = 1000
_decode = msgspec.json.Decoder(Pod).decode

SORTS: dict[str, HostilePod] = {
    **{trait.name: HostilePod((trait,)) for trait in TRAITS},
    "everything": HostilePod(TRAITS),
    "everything that rejects no node": HostilePod(tuple(trait for trait in TRAITS if not trait.may_reject)),
}


def largest(hostile: HostilePod, name: str, *, less: int = 0) -> bytes:
    """The largest acceptable pod of this sort as the watch shows it; a little less, so that no two are alike."""
    size = _TRIED_SIZE
    for _ in range(3):  # names get longer with their number
        written = msgspec.json.encode(hostile.build(size, name))
        size = int(size / max(_stored(msgspec.json.decode(written)) / STORED_BYTES, len(written) / SENT_BYTES))
    return msgspec.json.encode(hostile.build(size - less, name))


class Crowd:
    """Nodes, placed pods with many different labels, and ordinary pods that come right behind hostile ones."""

    def __init__(self) -> None:
        self._cluster = Cluster(kind="app")
        self._number = count()

    def wait(self, hostile: bytes) -> float:
        """CPU seconds from when the watch shows the hostile pod until an ordinary one behind it is decided."""
        ordinary = msgspec.json.encode(clusters.pod(0, f"behind-{next(self._number)}", cpu="1m"))
        before = time.process_time()
        for written in (hostile, ordinary):
            self._cluster.handle(Change(new=_decode(written)))
        self._cluster.loop.run(2)
        return time.process_time() - before

    def ordinary_ms(self) -> float:
        """CPU milliseconds of an ordinary pod that nothing is known about, while the hostile ones are there."""
        return self._cluster.ordinary() / 1000

    def lose(self, hostile: bytes) -> None:
        self._cluster.delete(_decode(hostile))


def alone() -> Iterator[tuple[str, float, float]]:
    """Each sort and each mixture: seconds that an ordinary pod waits behind one, and milliseconds of one beside it."""
    crowd = Crowd()
    for name, hostile in SORTS.items():
        pod = largest(hostile, "hostile")
        yield name, crowd.wait(pod), crowd.ordinary_ms()
        crowd.lose(pod)


def stream() -> tuple[float, float]:
    """Different ones come one after another and stay, an ordinary pod behind each.

    Seconds that one of those waited at most, and milliseconds of an ordinary pod in the end.
    """
    crowd = Crowd()
    pods = (largest(hostile, f"hostile-{i}", less=i) for i, hostile in enumerate(SORTS.values()))
    return max(crowd.wait(pod) for pod in pods), crowd.ordinary_ms()


def _stored(value: Any) -> int:
    """Bytes in protobuf, about: a tag and a length for each field, and no names but the keys of maps."""
    match value:
        case dict():
            return sum(4 + (4 + len(key) if "/" in key else 0) + _stored(each) for key, each in value.items())
        case list():
            return sum(4 + _stored(each) for each in value)
        case str():
            return len(value)
    return 1

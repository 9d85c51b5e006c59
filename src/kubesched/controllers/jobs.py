"""Jobs: how many pods they want at a time, and their completion indexes, as text like `0-2,5`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.api.kinds import Object
from kubesched.controllers.pod_templates import pod_from

INDEX = "batch.kubernetes.io/job-completion-index"
_VARIABLE = {"name": "JOB_COMPLETION_INDEX"}


def wanted_pods(job: Object, *, active: int) -> int:
    """How many pods should be active now: as many as may be side by side, and no more than are left to succeed.

    A Job without `completions` is a work queue: after its first success no pod is created any more.
    """
    spec, succeeded = job["spec"], int((job.get("status") or {}).get("succeeded", 0))
    parallelism = _or_one(spec.get("parallelism"))
    if spec.get("completions") is None:
        return active if succeeded else parallelism
    return max(0, min(parallelism, int(spec["completions"]) - succeeded))


def remaining_pods(job: Object) -> int:
    """How many pods have to succeed from now on."""
    spec, succeeded = job["spec"], int((job.get("status") or {}).get("succeeded", 0))
    if spec.get("completions") is None:
        return 0 if succeeded else _or_one(spec.get("parallelism"))
    return max(0, int(spec["completions"]) - succeeded)


def new_pods(job: Object, taken: Iterable[int | None]) -> Iterator[Object]:
    """The pods to create next, without end; of an Indexed Job only those of indexes that are neither done nor taken."""
    if job["spec"].get("completionMode") != "Indexed":
        while True:
            yield pod_from(job["spec"]["template"], prefix=job["metadata"]["name"])
    done = {*taken, *Indexes.read((job.get("status") or {}).get("completedIndexes", ""))}
    for index in range(_or_one(job["spec"].get("completions"))):
        if index not in done:
            yield indexed_pod(job, index)


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


class Indexes:
    """A set of indexes that reads and prints as Kubernetes writes it."""

    def __init__(self, indexes: Iterable[int] = ()) -> None:
        self._indexes = set(indexes)

    @classmethod
    def read(cls, text: str) -> Indexes:
        found: set[int] = set()
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
        return cls(found)

    def add(self, indexes: Iterable[int]) -> None:
        self._indexes.update(indexes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)

    def __str__(self) -> str:
        runs: list[tuple[int, int]] = []
        for index in sorted(self._indexes):
            if runs and runs[-1][1] == index - 1:
                runs[-1] = (runs[-1][0], index)
            else:
                runs.append((index, index))
        # Two neighbours are listed, three and more are a range.
        parts = ((str(a),) if a == b else (str(a), str(b)) if b == a + 1 else (f"{a}-{b}",) for a, b in runs)
        return ",".join(part for each in parts for part in each)


def index_of(pod: Object) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdigit() else None


def indexed_pod(job: Object, index: int) -> Object:
    """The pod of one index: it knows its index by annotation, label, host name and environment."""
    name = job["metadata"]["name"]
    pod = pod_from(job["spec"]["template"], prefix=f"{name}-{index}")
    metadata, spec = pod["metadata"], pod["spec"]
    for key in ("annotations", "labels"):
        metadata[key] = {**(metadata.get(key) or {}), INDEX: str(index)}
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_with_variable(container, source) for container in spec[kind]]
    return pod


def _with_variable(container: Object, source: Object) -> Object:
    others = [each for each in container.get("env") or () if each.get("name") != _VARIABLE["name"]]
    return {**container, "env": [*others, {**_VARIABLE, "valueFrom": source}]}

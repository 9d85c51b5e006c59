"""Annotations that let a trace play: when a pod arrives, and how long it runs once it is placed."""

from __future__ import annotations

from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod import Pod
from kubesched.api.schema import Mistake
from kubesched.config import Duration
from kubesched.simulate.workload_kinds import Workload

ARRIVAL = "kubesched.io/arrival"
DURATION = "kubesched.io/duration"


def arrival_of(pod: Pod) -> float:
    """Seconds after the start at which the pod is created."""
    return float(Duration.parse(pod.metadata.annotations.get(ARRIVAL, "0s")))


def duration_of(pod: Pod) -> float | None:
    """Seconds from its placement until the pod has done its work; None if it runs on."""
    text = pod.metadata.annotations.get(DURATION)
    return None if text is None else float(Duration.parse(text))


def trace_mistakes(obj: KubeObject) -> list[Mistake]:
    """Annotations of a pod, or of the template of a workload, that cannot be read."""
    if isinstance(obj, Pod):
        return _mistakes("metadata.annotations", obj.metadata)
    if isinstance(obj, Workload):
        return _mistakes("spec.template.metadata.annotations", obj.spec.template.metadata)
    return []


def _mistakes(path: str, meta: ObjectMeta) -> list[Mistake]:
    found = []
    for key in (ARRIVAL, DURATION):
        text = meta.annotations.get(key)
        if text is None:
            continue
        try:
            if Duration.parse(text) < 0:
                found.append(Mistake(f"{path}.{key}", f"must not be negative, got {text!r}"))
        except ValueError as error:
            found.append(Mistake(f"{path}.{key}", str(error)))
    return found

"""Annotations by which a node says that it is hollow, and a pod how its hollow life goes."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.config import Duration

HOLLOW = "kubesched.io/hollow"
"""On a node: "true" if nothing but this process stands behind it."""
FAILED = "kubesched.io/failed"
"""On a hollow node: "true" while it is out of touch. `kubectl annotate` is a way to pull the plug."""
DURATION = "kubesched.io/duration"
"""On a pod: how long it runs until its work is done. The simulator reads the same."""
STARTUP = "kubesched.io/startup"
"""On a pod: how long it takes from its placement until it runs."""
EXIT_CODE = "kubesched.io/exit-code"
"""On a pod: the exit code of its containers when the work is done; not 0 is a failure."""


def is_hollow(node: Object) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(HOLLOW) == "true")


def is_failed(node: Object) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(FAILED) == "true")


def seconds_in(pod: Object, annotation: str) -> float | None:
    """The time that an annotation says, or None: also if it says nothing that can be read."""
    text = (pod["metadata"].get("annotations") or {}).get(annotation)
    if text is None:
        return None
    try:
        return max(0.0, float(Duration.parse(text)))
    except ValueError:
        return None


def exit_code_of(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(EXIT_CODE, "0")
    return int(text) if text.isdigit() else 1

"""The single changes between two releases that can be made one at a time: behaviours, and defaults of feature gates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kubesched.api.release import BEHAVIOURS, Release
from kubesched.config import Features
from kubesched.config.features import GATES_BY_FIELD

GATES_PAGE = "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/"

_FIELDS_BY_GATE = {gate: name for name, gate in GATES_BY_FIELD.items()}
_STATE = {True: "on", False: "off"}

T = TypeVar("T", Features, Release)


@dataclass(frozen=True, slots=True)
class ReleaseCause:
    """Something that one release does and the other does not."""

    name: str
    """Of a behaviour, or of a feature gate."""
    words: str
    reference: str
    """Where upstream has it: a pull request, or the page on feature gates."""

    def made(self, features: Features, towards: Features) -> Features:
        """The features with this one as the others have it."""
        if (gate := _FIELDS_BY_GATE.get(self.name)) is not None:
            return _with(features, gate, towards)
        return replace(features, release=_with(features.release, self.name, towards.release))


def causes_between(before: Features, after: Features) -> tuple[ReleaseCause, ...]:
    """All that differs: behaviours in the order of `Release`, then gates."""
    old, new = before.release, after.release
    behaviours = (behaviour for behaviour in BEHAVIOURS if getattr(old, behaviour.name) != getattr(new, behaviour.name))
    gates = (gate for gate in _FIELDS_BY_GATE if before.is_on(gate) != after.is_on(gate))
    return (
        *(ReleaseCause(behaviour.name, behaviour.words, behaviour.reference) for behaviour in behaviours),
        *(ReleaseCause(gate, f"the gate {gate} is {_STATE[after.is_on(gate)]}", GATES_PAGE) for gate in gates),
    )


def _with(features: T, name: str, other: T) -> T:
    value: dict[str, Any] = {name: getattr(other, name)}
    return replace(features, **value)

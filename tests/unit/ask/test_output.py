"""Answers as documents: camelCase fields, data untouched."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kubesched.ask.output import API_VERSION, document


class Colour(StrEnum):
    RED = "Red"


@dataclass(frozen=True)
class Part:
    node_name: str
    missing_here: int | None = None


@dataclass(frozen=True)
class Answer:
    current_node: str
    colour: Colour
    parts: tuple[Part, ...] = ()
    by_node: dict[str, Part] = field(default_factory=dict)


def test_fields_are_camel_case_and_names_of_objects_stay_as_they_are() -> None:
    answer = Answer("node_1", Colour.RED, (Part("a"),), {"node_1": Part("b", 2)})
    assert document("Answer", answer) == {
        "apiVersion": API_VERSION,
        "kind": "Answer",
        "currentNode": "node_1",
        "colour": "Red",
        "parts": [{"nodeName": "a"}],
        "byNode": {"node_1": {"nodeName": "b", "missingHere": 2}},
    }

"""Searches for devices as kube-scheduler v1.36.4 made them: which device matched, and what errors said.

Reduced from the recorded decisions of the family dra-selectors to the devices of a node in the order they are tried,
the selectors of the class and of the request, and what came of it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubesched.api.quantity import parse_quantity
from kubesched.cel import AttributeValue, CelDevice, CelError, Version, compile_selector, view_device

RECORDINGS = json.loads(gzip.decompress(Path(__file__).with_name("recorded-searches.json.gz").read_bytes()))


def attribute(recorded: dict[str, Any]) -> AttributeValue:
    (kind, value), *_ = recorded.items()
    result: AttributeValue = Version(value) if kind == "version" else value
    return result


def device(recorded: dict[str, Any]) -> CelDevice:
    return view_device(
        recorded["driver"],
        {name: attribute(value) for name, value in recorded.get("attributes", {}).items()},
        {name: parse_quantity(entry["value"]) for name, entry in recorded.get("capacity", {}).items()},
        allow_multiple_allocations=recorded.get("allowMultipleAllocations", False),
    )


DEVICES = [device(recorded) for recorded in RECORDINGS["devices"]]


def matching(search: dict[str, Any]) -> Iterator[int]:
    """The devices that pass all selectors, in order; an error names the selector it is in."""
    for at, number in enumerate(search["devices"]):
        if all(passes(search, of, DEVICES[number]) for of in ("class", "request")):
            yield at


def passes(search: dict[str, Any], of: str, candidate: CelDevice) -> bool:
    for number, expression in enumerate(search[of]):
        try:
            if not compile_selector(expression).matches(candidate):
                return False
        except CelError as error:
            raise CelError(f"{of} selector #{number}: {error}") from None
    return True


def outcome(search: dict[str, Any]) -> dict[str, Any]:
    found: list[int] = []
    try:
        for at in matching(search):
            found.append(at)
            if len(found) == search["count"]:
                return {"chosen": found}
    except CelError as error:
        return {"error": str(error)}
    return {"chosen": None}


def test_every_recorded_search_ends_with_the_same_devices_or_the_same_words() -> None:
    searches = RECORDINGS["searches"]
    differences = []
    for search in searches:
        expected = {key: search[key] for key in ("chosen", "error") if key in search}
        if (found := outcome(search)) != expected:
            differences.append((search["class"], search["request"], expected, found))
    assert len(searches) > 1000
    assert not differences, f"{len(differences)} of {len(searches)}, such as {differences[:5]}"

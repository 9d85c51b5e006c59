"""Compares a result with a recording, in everything that a recording holds and that is not left to chance."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_PER_POD = (
    "pod",
    "profile",
    "outcome",
    "preEnqueue",
    "preFilter",
    "filter",
    "filterAll",
    "feasible",
    "skipScore",
    "raw",
    "scores",
    "total",
    "best",
    "chosen",
    "fitError",
    "message",
    "unschedulablePlugins",
    "postFilter",
    "preemption",
    "reserve",
)
_OF_CLAIMS = ("nodeAllocations", "allocations", "deallocatable", "claimWrites", "inUse")
"""Recorded since there are families of their own for claims, which are named dra-something."""
_AFTER_ERROR = ("pod", "profile", "outcome", "filter")


def differences(result: Json, recorded: Json) -> list[str]:
    """Where the result is not what was recorded: a line each."""
    if "configError" in recorded or "configError" in result:
        return _compare("", bool(result.get("configError")), bool(recorded.get("configError")), "configError")
    found: list[str] = []
    for field in ("plugins", "nodeOrder", "queueOrder"):
        if field in recorded:
            found += _compare("", result.get(field), recorded[field], field)
    found += _compare("", len(result["pods"]), len(recorded["pods"]), "number of pods")
    for ours, theirs in zip(result["pods"], recorded["pods"]):
        found += _pod(ours, theirs)
        if recorded["id"].startswith("dra-") and theirs["outcome"] != "error":
            for field in _OF_CLAIMS:
                found += _compare(theirs["pod"], _settled(field, ours), _settled(field, theirs), field)
    return found


def _pod(ours: Json, theirs: Json) -> list[str]:
    name = theirs["pod"]
    found: list[str] = []
    for field in _AFTER_ERROR if theirs["outcome"] == "error" else _PER_POD:
        found += _compare(name, _settled(field, ours), _settled(field, theirs), field)
    if theirs["outcome"] == "skipped":
        found += _compare(name, ours.get("skipped", "").split(" (")[0], theirs["skipped"].split(" (")[0], "skipped")
    found += _compare(name, _score_error(ours), _score_error(theirs), "scoreError")
    schedule = theirs.get("schedule", {})
    for field in ("evaluatedNodes", "feasibleNodes"):
        if field in schedule:
            found += _compare(name, ours.get("schedule", {}).get(field), schedule[field], f"schedule.{field}")
    if "host" in schedule:
        found += _compare(name, ours.get("chosen"), schedule["host"], "schedule.host")
    return found


def _score_error(entry: Json) -> str:
    """Without the extension point, which recordings name first."""
    text: str = entry.get("scoreError", "")
    return text.removeprefix("PreScore: ").removeprefix("Score: ")


def _settled(field: str, entry: Json) -> Any:
    """A field as it is compared: lists that have no order of their own are sorted, empty is absent."""
    value = entry.get(field)
    if field == "preFilter" and value:
        value = {k: v for k, v in {**value, "skip": sorted(value.get("skip") or ())}.items() if v}
    return value or None


def _compare(pod: str, ours: Any, theirs: Any, field: str) -> list[str]:
    if ours == theirs:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return [line for key in keys for line in _compare(pod, ours.get(key), theirs.get(key), f"{field}.{key}")]
    return [f"{pod} {field}: got {ours!r}, recorded {theirs!r}"]

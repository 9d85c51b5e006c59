"""How custom resources are shown: by the columns that their definition names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from kubesched.api.kinds import Object
from kubesched.sandbox.tables.column import AGE, NAME, Cell, Column, count, since, word

Step = tuple[str, ...]
_STEP = re.compile(
    r"\.?(?:"
    r"(?P<field>(?:\\.|[^.\[\]\\])+)"
    r"|\[\s*(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\s*\]"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\[\?\(@\.(?P<key>[\w.\-/]+)\s*==\s*(?P<mark>['\"]?)(?P<value>[^'\"]*?)(?P=mark)\s*\)\]"
    r")"
)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...] | None:
    """The steps of a simple JSONPath; None for one that is not."""
    path = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return None
        if match["field"] is not None:
            steps.append(("field", re.sub(r"\\(.)", r"\1", match["field"])))
        elif match["quote"] is not None:
            steps.append(("field", re.sub(r"\\(.)", r"\1", match["quoted"])))
        elif match["index"] is not None:
            steps.append(("index", match["index"]))
        elif match["all"] is not None:
            steps.append(("all",))
        else:
            steps.append(("where", match["key"], match["value"]))
        position = match.end()
    return tuple(steps)


def values_at(obj: Object, path: str) -> list[Any]:
    """Everything that a simple JSONPath finds: fields, indices, [*] and [?(@.type=="Ready")]."""
    found: list[Any] = [obj]
    for step in _steps(path) or (("none",),):
        found = [value for item in found for value in _follow(item, step)]
    return found


def _follow(item: Any, step: Step) -> Iterable[Any]:
    match step:
        case ("field", name) if isinstance(item, dict):
            return [item[name]] if item.get(name) is not None else []
        case ("index", index) if isinstance(item, list):
            i = int(index[:9])
            return item[i : i + 1] if i >= 0 else item[i:][:1]
        case ("all",) if isinstance(item, list | dict):
            return item.values() if isinstance(item, dict) else item
        case ("where", key, wanted) if isinstance(item, list):
            return [each for each in item if [str(value) for value in values_at(each, f".{key}")] == [wanted]]
    return []


def _cell(kind: str, path: str) -> Cell:
    def cell(obj: Object, now: datetime) -> Any:
        found = values_at(obj, path)
        if not found:
            return None
        value = found[0]
        match kind:
            case "date":
                return since(value, now)
            case "integer":
                return int(value) if isinstance(value, int | float) and abs(value) < 2**63 else None
            case "number":
                return value if isinstance(value, int | float) and not isinstance(value, bool) else None
            case "boolean":
                return value if isinstance(value, bool) else None
        return ",".join(_written(each) for each in found)

    return cell


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def custom_columns(defined: Sequence[Object] | None) -> tuple[Column, ...]:
    """The columns of a custom resource; without any defined, its age."""
    if not defined:
        return (NAME, AGE)
    return (
        NAME,
        *(
            Column(
                word(each, "name"),
                _cell(word(each, "type"), word(each, "jsonPath")),
                word(each, "type", otherwise="string"),
                word(each, "format"),
                count(each, "priority"),
                word(each, "description"),
            )
            for each in defined
        ),
    )

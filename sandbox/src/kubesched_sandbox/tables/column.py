"""Columns of tables: ways to show a field, and those that the definition of a custom resource names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.admission.reading import value_at
from kubesched.api.kinds import Object

NONE = "<none>"
Cell = Callable[[Object, datetime], Any]
Shape = Callable[[Any, datetime], Any]
"""How a value is shown at a time."""


class Column(msgspec.Struct, frozen=True):
    """One column; those with a priority are shown only when more is asked for (-o wide)."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or f"{self.name} of the object.",
            "priority": self.priority,
        }


def word(obj: Any, *path: str, otherwise: str = "") -> str:
    """What is found along the path as a word; a stand-in if nothing is there."""
    found = value_at(obj, *path)
    return otherwise if found in (None, "") else str(found)


def count(obj: Any, *path: str) -> int:
    found = value_at(obj, *path)
    return found if isinstance(found, int) else 0


def each(obj: Any, *path: str) -> list[Object]:
    """The objects in the list along the path."""
    found = value_at(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def listed(obj: Any, *path: str) -> str:
    """The list along the path, with commas."""
    found = value_at(obj, *path)
    return ",".join(map(str, found)) if isinstance(found, list) else ""


def is_true(obj: Object, condition: str) -> bool:
    """Whether the object has a condition of this type that holds."""
    conditions = each(obj, "status", "conditions")
    return any(state.get("type") == condition and state.get("status") == "True" for state in conditions)


def labels(found: Any) -> str:
    """Labels as kubectl writes them."""
    if not isinstance(found, Mapping) or not found:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(found.items()))


def selector(found: Any) -> str:
    """A label selector as kubectl writes it; nothing for an empty one."""
    wanted = value_at(found, "matchLabels")
    terms = [(str(key), f"{key}={value}") for key, value in wanted.items()] if isinstance(wanted, dict) else []
    for expression in each(found, "matchExpressions"):
        key, values = word(expression, "key"), listed(expression, "values")
        written = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
        terms.append((key, written.get(word(expression, "operator"), f"{key} notin ({values})")))
    return ",".join(text for _, text in sorted(terms))


def size(found: Any) -> int:
    """How many entries there are in a map or a list."""
    return len(found) if isinstance(found, dict | list) else 0


_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(modes: Any) -> str:
    """Access modes in short, in the order in which kubectl has them."""
    return ",".join(short for mode, short in _SHORT_MODES.items() if isinstance(modes, list) and mode in modes)


def addresses(balanced: Any) -> str:
    """Addresses of load balancers."""
    return ",".join(filter(None, (word(address, "ip") or word(address, "hostname") for address in each(balanced))))


def _of_each(key: str) -> Callable[[Any], str]:
    return lambda found: ",".join(word(item, key) for item in each(found))


def _plain(show: Callable[[Any], Any]) -> Shape:
    return lambda found, _: show(found)


SHAPES: dict[str, tuple[Shape, str]] = {
    "": (_plain(word), "string"),
    "access_modes": (_plain(access_modes), "string"),
    "addresses": (_plain(addresses), "string"),
    "count": (_plain(count), "integer"),
    "date": (_plain(lambda found: found), "date"),
    "duration": (_plain(lambda found: human_duration(found) if isinstance(found, int) else ""), "string"),
    "images": (_plain(_of_each("image")), "string"),
    "if_true": (_plain(lambda found: found is True), "boolean"),
    "kind_and_name": (_plain(lambda found: f"{word(found, 'kind')}/{word(found, 'name')}"), "string"),
    "labels": (_plain(labels), "string"),
    "listed": (_plain(listed), "string"),
    "names": (_plain(_of_each("name")), "string"),
    "selector": (_plain(selector), "string"),
    "since": (lambda found, now: "" if found is None else since(found, now), "string"),
    "size": (_plain(size), "integer"),
    "stripped": (_plain(lambda found: word(found).strip()), "string"),
    "true_or_false": (_plain(lambda found: str(found is True)), "string"),
    "unless_false": (_plain(lambda found: found is not False), "boolean"),
}
"""How the value of a field is shown, and of which type that is."""


def is_leaving(obj: Object) -> bool:
    """Whether the object is being deleted."""
    return value_at(obj, "metadata", "deletionTimestamp") is not None


NAME = Column("Name", lambda obj, _: word(obj, "metadata", "name"), format="name", description="Name of the object.")
AGE = Column(
    "Age",
    lambda obj, now: since(value_at(obj, "metadata", "creationTimestamp"), now),
    description="How long ago the object was created.",
)


UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """A length of time: 5s, 2m10s, 3h, 4d12h, 2y30d, ..."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 3 * _HOUR:
        return _two(whole, _MINUTE, "m", 1, "s", fine_below=10)
    if whole < 2 * _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "m", fine_below=8)
    if whole < 2 * _YEAR:
        return _two(whole, _DAY, "d", _HOUR, "h", fine_below=8)
    return _two(whole, _YEAR, "y", _DAY, "d", fine_below=8)


def _two(seconds: int, big: int, big_unit: str, small: int, small_unit: str, *, fine_below: int) -> str:
    """In the bigger unit; the rest in the smaller one only where it still matters."""
    count, rest = divmod(seconds, big)
    more = rest // small
    return f"{count}{big_unit}{more}{small_unit}" if more and count < fine_below else f"{count}{big_unit}"


def moment(timestamp: Any) -> datetime | None:
    """The time that a timestamp of the API says, if it says one."""
    if not isinstance(timestamp, str):
        return None
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def since(timestamp: Any, now: datetime) -> str:
    """How long ago a timestamp of the API was."""
    then = moment(timestamp)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())


# -- custom resources -------------------------------------------------------------------------------------------------


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
            return [element for element in item if [str(value) for value in values_at(element, f".{key}")] == [wanted]]
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
        return ",".join(_written(value) for value in found)

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

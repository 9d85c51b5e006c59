"""Columns of tables, ways to show a field, and reading of objects that may hold anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.admission.reading import value_at
from kubesched.api.kinds import Object

NONE = "<none>"
Cell = Callable[[Object, datetime], Any]


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
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def labels(found: Any) -> str:
    """Labels as kubectl writes them."""
    if not isinstance(found, Mapping) or not found:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(found.items()))


def selector(found: Any) -> str:
    """A label selector as kubectl writes it; nothing for an empty one."""
    wanted = value_at(found, "matchLabels")
    terms = [(str(key), f"{key}={value}") for key, value in wanted.items()] if isinstance(wanted, dict) else []
    for one in each(found, "matchExpressions"):
        key, values = word(one, "key"), listed(one, "values")
        written = {"Exists": key, "DoesNotExist": f"!{key}", "In": f"{key} in ({values})"}
        terms.append((key, written.get(word(one, "operator"), f"{key} notin ({values})")))
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
    return ",".join(filter(None, (word(one, "ip") or word(one, "hostname") for one in each(balanced))))


def _of_each(key: str) -> Callable[[Any], str]:
    return lambda found: ",".join(word(one, key) for one in each(found))


# How the value of a field is shown, and of which type that is.
SHAPES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "": (word, "string"),
    "access_modes": (access_modes, "string"),
    "addresses": (addresses, "string"),
    "count": (count, "integer"),
    "date": (lambda found: found, "date"),
    "images": (_of_each("image"), "string"),
    "if_true": (lambda found: found is True, "boolean"),
    "kind_and_name": (lambda found: f"{word(found, 'kind')}/{word(found, 'name')}", "string"),
    "labels": (labels, "string"),
    "listed": (listed, "string"),
    "names": (_of_each("name"), "string"),
    "selector": (selector, "string"),
    "size": (size, "integer"),
    "unless_false": (lambda found: found is not False, "boolean"),
}


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

"""Manifests to objects: files, directories and standard input, as people write them and as kubectl prints them.

All mistakes are found before anything is refused. What a live API server would accept is accepted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.schema import Mistake, convert
from kubesched.api.yaml import YamlError, documents
from kubesched.simulate.admission import complete, named, unknown_priority_classes
from kubesched.simulate.checks import mistakes_in
from kubesched.simulate.custom import CustomResources
from kubesched.simulate.kinds import LIST, kind_of
from kubesched.simulate.trace import trace_mistakes

SUFFIXES = (".yaml", ".yml", ".json")


class ManifestError(UserError):
    """Input that cannot be used: all that is wrong with it, a line each."""


@dataclass(frozen=True)
class Manifests:
    """What was found, completed as the API server would have."""

    objects: tuple[KubeObject, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many objects there were of kinds that scheduling does not look at."""
    sources: tuple[str, ...] = ()
    """The file of each object; those that nobody wrote, which are namespaces, come last and have none."""


def load(paths: Iterable[str], *, workloads: bool = False, custom: Iterable[str] = ()) -> Manifests:
    """Everything in some files and directories; `-` is standard input. Raises ManifestError.

    With `workloads`, those that make pods are read with their templates. `custom` are the resources, such as
    `racks.v1.example.com`, that are read because plugins wait for them.
    """
    reading = _Reading(workloads, CustomResources(custom))
    for source in _sources(paths, reading):
        data = _bytes_of(source, reading)
        if data is not None:
            reading.file("<stdin>" if source == "-" else source, data)
    return reading.finish()


def loads(
    text: str | bytes, source: str = "<text>", *, workloads: bool = False, custom: Iterable[str] = ()
) -> Manifests:
    """The same for text at hand."""
    reading = _Reading(workloads, CustomResources(custom))
    reading.file(source, text.encode() if isinstance(text, str) else text)
    return reading.finish()


def _sources(paths: Iterable[str], reading: _Reading) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        directory = Path(path)
        if path in ("-", "") or not directory.is_dir():
            found[path] = None
            continue
        files = sorted(str(file) for file in directory.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        if not files:
            reading.say(f"{path}: no manifests in this directory (looked for {', '.join(SUFFIXES)})")
        found.update(dict.fromkeys(files))
    return list(found)


def _bytes_of(source: str, reading: _Reading) -> bytes | None:
    try:
        if source == "-":
            return sys.stdin.buffer.read()
        with open(source, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else None
        reading.say(f"{source or repr(source)}: {problem or error}")
        return None


class _Head(msgspec.Struct, rename="camel"):
    """As much of an object as it takes to know what it is; the items of a list stay bytes."""

    api_version: Any = None
    kind: Any = None
    items: list[msgspec.Raw] | None = None


class _Place(NamedTuple):
    """Where an object was found."""

    source: str
    document: int
    item: str = ""

    def __str__(self) -> str:
        return f"{self.source}: document {self.document}{', ' if self.item else ''}{self.item}"


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class _Reading:
    """One reading of some files: objects with the places they were found at, and lines about mistakes."""

    def __init__(self, workloads: bool, custom: CustomResources) -> None:
        self.lines: list[str] = []
        self._workloads = workloads
        self._custom = custom
        self._maybe_custom: list[tuple[_Place, dict[str, Any]]] = []
        self._objects: list[KubeObject] = []
        self._places: list[_Place] = []
        self._skipped: Counter[str] = Counter()
        self._seen: dict[tuple[type[KubeObject], str], _Place] = {}

    def say(self, line: str) -> None:
        """Note a mistake; what cannot be printed is escaped, so that it stays one line."""
        printable = line.isprintable()
        self.lines.append(line if printable else "".join(c if c.isprintable() else repr(c)[1:-1] for c in line))

    def finish(self) -> Manifests:
        self._add_custom()
        for index, mistake in unknown_priority_classes(self._objects):
            self._complain(self._places[index], self._objects[index], [mistake])
        if self.lines:
            raise ManifestError(*self.lines)
        sources = tuple(place.source for place in self._places)
        return Manifests(tuple(complete(self._objects)), dict(sorted(self._skipped.items())), sources)

    # -- files to documents -------------------------------------------------------------------------------------------

    def file(self, source: str, data: bytes) -> None:
        """Read one file; bytes that start like JSON are JSON."""
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            if data.lstrip()[:1] in (b"{", b"["):
                self._json_file(source, data)
            else:
                for number, document in enumerate(documents(data.decode()), 1):
                    self._value(_Place(source, number), document.value)
        except YamlError as error:
            self.say(f"{source}: {error}")
        except UnicodeDecodeError:
            self.say(f"{source}: not UTF-8 text")
        except msgspec.DecodeError as error:
            self.say(f"{source}: not JSON: {error}")
        except RecursionError:
            self.say(f"{source}: nested too deeply")

    def _json_file(self, source: str, data: bytes) -> None:
        try:
            self._json(_Place(source, 1), data)
        except msgspec.DecodeError:
            text = data.decode()
            pieces = list(_json_values(text))
            if len(pieces) > 1:
                for number, piece in enumerate(pieces, 1):
                    self._json(_Place(source, number), piece.encode())
            elif (values := _braced_yaml(text)) is not None:
                for number, value in enumerate(values, 1):
                    self._value(_Place(source, number), value)
            else:
                list(documents(text))  # raises, most likely, and knows the line and the column
                raise

    def _json(self, place: _Place, data: bytes) -> None:
        """One document. A list, which may be a whole cluster, is read item by item straight into records."""
        try:
            head = msgspec.json.decode(data, type=_Head)
        except msgspec.ValidationError:
            head = _Head()
        if head.items is None or not isinstance(head.kind, str) or not head.kind.endswith(LIST):
            self._value(place, msgspec.json.decode(data))
            return
        for i, item in enumerate(head.items):
            self._raw_item(place._replace(item=f"items[{i}]"), item, head)

    def _raw_item(self, place: _Place, raw: msgspec.Raw, parent: _Head) -> None:
        try:
            head = msgspec.json.decode(raw, type=_Head)
            api_version, kind = _own_or_listed(head.api_version, head.kind, parent.api_version, parent.kind)
            record = kind_of(api_version, kind, workloads=self._workloads)
            if isinstance(record, type):
                self._add(place, _decoder(record).decode(raw))
                return
        except msgspec.ValidationError:
            pass  # a null somewhere, or a mistake: the slow way finds out which
        self._value(place, msgspec.json.decode(raw), parent.api_version, parent.kind)

    # -- documents to objects -----------------------------------------------------------------------------------------

    def _value(self, place: _Place, value: Any, list_version: Any = None, list_kind: Any = None) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            self.say(f"{place}: expected a Kubernetes object, got {_described(value)}")
            return
        api_version, kind = _own_or_listed(value.get("apiVersion"), value.get("kind"), list_version, list_kind)
        items = value.get("items")
        if isinstance(kind, str) and kind.endswith(LIST) and (isinstance(items, list) or _is_list_of_ours(kind)):
            self._items(place, api_version, kind, items)
            return
        record = kind_of(api_version, kind, workloads=self._workloads)
        if record is None:
            self._foreign(place, {**value, "apiVersion": api_version, "kind": kind})
        elif isinstance(record, Mistake):
            self._complain(place, value, [record])
        else:
            obj, mistakes = convert(value, record)
            if obj is None:
                self._complain(place, value, mistakes + _further_mistakes(value, record, mistakes))
            else:
                self._add(place, obj)

    def _foreign(self, place: _Place, value: dict[str, Any]) -> None:
        if self._custom.may_have(value["apiVersion"]):
            self._maybe_custom.append((place, value))
        elif not self._custom.define(value):
            self._skipped[value["kind"]] += 1

    def _add_custom(self) -> None:
        """Once all definitions have been seen: those may come after what they define."""
        for place, value in self._maybe_custom:
            obj = self._custom.read(value)
            if obj is None:
                self._skipped[value["kind"]] += 1
            elif isinstance(obj, list):
                self._complain(place, value, obj)
            else:
                self._add(place, obj)

    def _items(self, place: _Place, api_version: Any, kind: str, items: Any) -> None:
        if items is None:
            return
        if not isinstance(items, list):
            self.say(f"{place} ({kind}): items: expected a list, got {_described(items)}")
            return
        for i, item in enumerate(items):
            inside = f"{place.item}.items[{i}]" if place.item else f"items[{i}]"
            self._value(place._replace(item=inside), item, api_version, kind)

    def _add(self, place: _Place, obj: KubeObject) -> None:
        obj = named(obj, len(self._objects))
        self._complain(place, obj, mistakes_in(obj))
        if self._workloads:
            self._complain(place, obj, trace_mistakes(obj))
        earlier = self._seen.setdefault((type(obj), obj.key), place)
        if earlier is not place:
            self._complain(place, obj, [Mistake("", f"the same object is in {earlier} already")])
            return
        self._objects.append(obj)
        self._places.append(place)

    def _complain(self, place: _Place, subject: KubeObject | dict[str, Any], mistakes: Iterable[Mistake]) -> None:
        for mistake in mistakes:
            self.say(f"{place} ({_title(subject)}): {mistake}")


def _json_values(text: str) -> Iterator[str]:
    """The values of JSON text that has one after another, as several kubectl calls print it."""
    decoder, position = json.JSONDecoder(), 0
    while (start := _skip_separators(text, position)) < len(text):
        try:
            _, position = decoder.raw_decode(text, start)
        except ValueError:
            return
        yield text[start:position]


def _braced_yaml(text: str) -> list[Any] | None:
    """The documents of YAML that only looks like JSON, as `{kind: Pod}` does; None if it is not YAML either."""
    try:
        return [document.value for document in documents(f"--- {text}")]
    except YamlError:
        return None


def _skip_separators(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text.startswith("---", position)):
        position += 1 if text[position].isspace() else 3
    return position


def _own_or_listed(api_version: Any, kind: Any, list_version: Any, list_kind: Any) -> tuple[Any, Any]:
    """What an item is; those of a PodList need not say that they are pods."""
    if isinstance(list_kind, str) and list_kind != LIST:
        return api_version or list_version, kind or list_kind.removesuffix(LIST)
    return api_version, kind


def _is_list_of_ours(kind: str) -> bool:
    return kind == LIST or kind.removesuffix(LIST) in KINDS


def _title(subject: KubeObject | dict[str, Any]) -> str:
    """`Pod shop/web-1`, as far as it is known."""
    if isinstance(subject, KubeObject):
        return f"{subject.kind or type(subject).__name__} {subject.key if subject.name else ''}".rstrip()
    meta = subject.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    names = (meta.get("namespace"), meta.get("name"))
    key = "/".join(name for name in names if isinstance(name, str) and name)
    kind = subject.get("kind")
    return f"{kind if isinstance(kind, str) else 'object'} {key}".strip()


def _described(value: Any) -> str:
    return "a list" if isinstance(value, list) else json.dumps(value, default=str)[:60]


def _further_mistakes(value: Any, record: type[KubeObject], known: list[Mistake]) -> list[Mistake]:
    """What else is wrong with an object that cannot be read, as far as its shape lets one look."""
    rough, _ = convert(value, record, shape_only=True)
    if rough is None:
        return []
    paths = {mistake.path for mistake in known}
    return [mistake for mistake in mistakes_in(rough) if mistake.path not in paths]

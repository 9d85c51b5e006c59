"""Manifests to objects: files, directories and standard input, as people write them and as kubectl prints them.

Objects without a uid are admitted as an API server admits new ones. Those that carry a uid come from a server, and are
taken as it gave them. All mistakes are found before anything is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec

from kubesched.admission.schemas import field_mistakes
from kubesched.admission.schemas.table import is_acceptable_json
from kubesched.api.custom import CustomObject
from kubesched.api.errors import UserError
from kubesched.api.kinds import KINDS, Object
from kubesched.api.meta import KubeObject
from kubesched.api.schema import Mistake, convert, described
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import Namespace, PriorityClass
from kubesched.api.yaml import YamlError, documents
from kubesched.simulate.admission import Admission, Classes
from kubesched.simulate.files import braced_yaml, bytes_of, json_values, sources_of
from kubesched.simulate.kinds import (
    DEFAULT_NAMESPACE,
    LIST,
    CustomResources,
    PodWorkload,
    ReadAs,
    bare_namespace,
    is_known,
    kind_of,
    record_of,
    unknown_kind,
)
from kubesched.simulate.workloads import trace_mistakes


class ManifestError(UserError):
    """Input that cannot be used: all that is wrong with it, a line each."""


@dataclass(frozen=True)
class Manifests:
    """What was found, completed as the API server would have."""

    objects: tuple[KubeObject, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many objects there were of kinds that scheduling does not look at."""
    sources: tuple[str, ...] = ()
    """The file of each object; namespaces that no file has come last and have none."""
    warnings: tuple[str, ...] = ()
    """Lines about objects of unknown kinds, which are left out."""


def load(
    paths: Iterable[str],
    *,
    workloads: bool = False,
    custom: Iterable[str] = (),
    given: Iterable[KubeObject] = (),
    given_by: str = "",
    replacing: bool = False,
) -> Manifests:
    """Everything in some files and directories; `-` is standard input. Raises ManifestError.

    With `workloads`, those that make pods are read with their templates. `custom` are the resources, such as
    `racks.v1.example.com`, that are read because plugins wait for them. `given` are records that a server has admitted
    and that come first, `given_by` says what to call their source; with `replacing`, files may have them again.
    """
    reading = _Reading(workloads, CustomResources(custom))
    reading.take(given, given_by, may_come_again=replacing)
    for source in sources_of(paths, reading.say):
        data = bytes_of(source, reading.say)
        if data is not None:
            reading.file("<stdin>" if source == "-" else source, data)
    return reading.finish()


def loads(
    text: str | bytes,
    source: str = "<text>",
    *,
    workloads: bool = False,
    custom: Iterable[str] = (),
    given: Iterable[KubeObject] = (),
) -> Manifests:
    """The same for text at hand, which may have what is `given` again."""
    reading = _Reading(workloads, CustomResources(custom))
    reading.take(given, "", may_come_again=True)
    reading.file(source, text.encode() if isinstance(text, str) else text)
    return reading.finish()


class _HeadMetadata(msgspec.Struct):
    uid: str = ""


class _Head(msgspec.Struct, rename="camel"):
    """As much of an object as it takes to know what it is; the items of a list stay bytes."""

    api_version: Any = None
    kind: Any = None
    metadata: _HeadMetadata | None = None
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


class _Entry(NamedTuple):
    """An object that was found: as a record if a server has admitted it, else as it was written."""

    place: _Place
    read_as: ReadAs
    obj: KubeObject | Object


class _Reading:
    """One reading of some files: objects with the places they were found at, and lines about mistakes."""

    def __init__(self, workloads: bool, custom: CustomResources) -> None:
        self._lines: list[tuple[int, str]] = []
        """With the number of entries before each, which is the order to show them in."""
        self._workloads = workloads
        self._custom = custom
        self._others: list[tuple[int, _Place, Object]] = []
        self._entries: list[_Entry] = []
        self._objects: list[KubeObject] = []
        self._sources: list[str] = []
        self._skipped: Counter[str] = Counter()
        self._unknown: dict[tuple[str, str], list[_Place]] = {}
        self._seen: dict[tuple[str, str], _Place] = {}

    def say(self, line: str, position: int | None = None) -> None:
        """Note a mistake; what cannot be printed is escaped, so that it stays one line."""
        shown = line if line.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        self._lines.append((len(self._entries) if position is None else position, shown))

    def take(self, records: Iterable[KubeObject], source: str, *, may_come_again: bool = False) -> None:
        """Objects of a live cluster or a snapshot."""
        place = _Place(source, 1)
        for record in records:
            kind = type(record).__name__
            if isinstance(record, CustomObject):
                self._objects.append(record)
                self._sources.append(source)
                self._seen[record.kind, record.key] = place
            else:
                self._entries.append(_Entry(place, record_of(kind, workloads=self._workloads), record))
                if not may_come_again:
                    self._seen[kind, record.key] = place

    def finish(self) -> Manifests:
        """Admit what was read. Only now are all classes and definitions known."""
        for place in self._admit_all():
            self._sources.append(place.source)
        self._read_others()
        warnings = tuple(unknown_kind(*key, places) for key, places in self._unknown.items())
        if self._lines:
            self._lines.sort(key=lambda line: line[0])
            raise ManifestError(*(line for _, line in self._lines), *warnings)
        if not self._objects and sum(map(len, self._unknown.values())) == sum(self._skipped.values()) > 0:
            raise ManifestError(*warnings)
        named = {obj.name for obj in self._objects if isinstance(obj, Namespace)}
        implied = dict.fromkeys(obj.namespace for obj in self._objects if obj.namespace and obj.namespace not in named)
        self._objects += [bare_namespace(name) for name in implied]
        return Manifests(tuple(self._objects), dict(sorted(self._skipped.items())), tuple(self._sources), warnings)

    # -- admission ----------------------------------------------------------------------------------------------------

    def _admit_all(self) -> Iterator[_Place]:
        """The places of the objects that were added, in the order of the files."""
        records: dict[int, KubeObject] = {}
        classes = [i for i, entry in enumerate(self._entries) if entry.read_as.record in (PriorityClass, StorageClass)]
        for i in classes:
            self._admit(i, Admission(Classes(records.values())), records)
        admission = Admission(Classes(records.values()))
        for i, entry in enumerate(self._entries):
            if i not in records and i not in classes:
                self._admit(i, admission, records)
            if i in records:
                self._objects.append(records[i])
                yield entry.place

    def _admit(self, i: int, admission: Admission, records: dict[int, KubeObject]) -> None:
        place, read_as, obj = self._entries[i]
        if isinstance(obj, KubeObject):
            record: KubeObject | None = admission.with_priority(obj) if isinstance(obj, PodWorkload) else obj
        else:
            record, mistakes = admission.admit(read_as, obj)
            self._complain(place, obj, mistakes, i)
        if record is None:
            return
        if self._workloads and (mistakes := trace_mistakes(record)):
            self._complain(place, record, mistakes, i)
        records[i] = record

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
            pieces = list(json_values(text))
            if len(pieces) > 1:
                for number, piece in enumerate(pieces, 1):
                    self._json(_Place(source, number), piece.encode())
            elif (values := braced_yaml(text)) is not None:
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
            read_as = kind_of(api_version, kind, workloads=self._workloads)
            has_uid = head.metadata is not None and bool(head.metadata.uid)
            if has_uid and isinstance(read_as, ReadAs) and not read_as.makes_pods:
                record = _decoder(read_as.record).decode(raw)
                if is_acceptable_json(read_as.resource, raw):
                    self._add(place, read_as, record)
                    return
        except msgspec.ValidationError:
            pass  # a null somewhere, or a mistake: the slow way finds out which
        self._value(place, msgspec.json.decode(raw), parent.api_version, parent.kind)

    # -- documents to objects -----------------------------------------------------------------------------------------

    def _value(self, place: _Place, value: Any, list_version: Any = None, list_kind: Any = None) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            self.say(f"{place}: expected a Kubernetes object, got {described(value)}")
            return
        api_version, kind = _own_or_listed(value.get("apiVersion"), value.get("kind"), list_version, list_kind)
        items = value.get("items")
        is_list = isinstance(kind, str) and kind.endswith(LIST)
        if is_list and (isinstance(items, list) or kind == LIST or kind.removesuffix(LIST) in KINDS):
            self._items(place, api_version, kind, items)
            return
        read_as = kind_of(api_version, kind, workloads=self._workloads)
        if read_as is None:
            self._others.append((len(self._entries), place, {**value, "apiVersion": api_version, "kind": kind}))
        elif isinstance(read_as, Mistake):
            self._complain(place, value, [read_as])
        else:
            self._object(place, read_as, {**value, "apiVersion": api_version, "kind": kind})

    def _object(self, place: _Place, read_as: ReadAs, obj: Object) -> None:
        metadata = obj.get("metadata") or {}
        if not isinstance(metadata, dict):
            self._complain(place, obj, [Mistake("metadata", f"expected a mapping, got {described(metadata)}")])
        elif metadata.get("uid"):
            mistakes = [mistake.mistake for mistake in field_mistakes(read_as.resource, obj) if not mistake.unknown]
            record, unread = convert(obj, read_as.record)
            if record is None or mistakes:
                self._complain(place, obj, mistakes or unread)
            else:
                self._add(place, read_as, obj if read_as.makes_pods else record)
        else:
            self._add(place, read_as, {**obj, "metadata": self._with_name(read_as, metadata)})

    def _with_name(self, read_as: ReadAs, metadata: Object) -> Object:
        """The metadata with the name and the namespace that a server would give."""
        completed = dict(metadata)
        if read_as.resource.namespaced:
            completed["namespace"] = metadata.get("namespace") or DEFAULT_NAMESPACE
        elif isinstance(metadata.get("namespace"), str):
            completed.pop("namespace", None)  # kubectl ignores it, too
        if not metadata.get("name") and metadata.get("generateName"):
            completed["name"] = f"{metadata['generateName']}{len(self._entries):05}"
        return completed

    def _read_others(self) -> None:
        """Objects of custom resources that plugins wait for; and which of the rest are of no known kind."""
        for _, _, value in self._others:
            self._custom.define(value)
        for position, place, value in self._others:
            obj = self._custom.read(value)
            if isinstance(obj, list):
                self._complain(place, value, obj, position)
            elif obj is not None:
                if self._is_new(place, obj.kind, obj.key, obj, position):
                    self._objects.append(obj)
                    self._sources.append(place.source)
            elif not self._custom.is_awaited_definition(value):
                self._skipped[value["kind"]] += 1
                if not is_known(value["apiVersion"], value["kind"]) and not self._custom.defines(value):
                    self._unknown.setdefault((value["apiVersion"], value["kind"]), []).append(place)

    def _items(self, place: _Place, api_version: Any, kind: str, items: Any) -> None:
        if items is None:
            return
        if not isinstance(items, list):
            self.say(f"{place} ({kind}): items: expected a list, got {described(items)}")
            return
        for i, item in enumerate(items):
            inside = f"{place.item}.items[{i}]" if place.item else f"items[{i}]"
            self._value(place._replace(item=inside), item, api_version, kind)

    def _add(self, place: _Place, read_as: ReadAs, obj: KubeObject | Object) -> None:
        key = obj.key if isinstance(obj, KubeObject) else _key(obj)
        if self._is_new(place, read_as.record.__name__, key, obj, len(self._entries)):
            self._entries.append(_Entry(place, read_as, obj))

    def _is_new(self, place: _Place, kind: str, key: str, obj: KubeObject | Object, position: int) -> bool:
        earlier = self._seen.setdefault((kind, key), place)
        if key and earlier is not place:
            self._complain(place, obj, [Mistake("", f"the same object is in {earlier} already")], position)
            return False
        return True

    def _complain(
        self,
        place: _Place,
        subject: KubeObject | Object,
        mistakes: Iterable[Mistake],
        position: int | None = None,
    ) -> None:
        for mistake in mistakes:
            self.say(f"{place} ({_title(subject)}): {mistake}", position)


def _own_or_listed(api_version: Any, kind: Any, list_version: Any, list_kind: Any) -> tuple[Any, Any]:
    """What an item is; those of a PodList need not say that they are pods."""
    if isinstance(list_kind, str) and list_kind != LIST:
        return api_version or list_version, kind or list_kind.removesuffix(LIST)
    return api_version, kind


def _title(subject: KubeObject | Object) -> str:
    """`Pod shop/web-1`, as far as it is known."""
    if isinstance(subject, KubeObject):
        return f"{subject.kind or type(subject).__name__} {subject.key if subject.name else ''}".rstrip()
    kind = subject.get("kind")
    return f"{kind if isinstance(kind, str) else 'object'} {_key(subject)}".strip()


def _key(obj: Object) -> str:
    """`shop/web-1`; empty for an object that has no name."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    names = [name for name in (metadata.get("namespace"), metadata.get("name")) if isinstance(name, str) and name]
    return "/".join(names) if metadata.get("name") else ""

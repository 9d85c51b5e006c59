"""Decodes the bytes of lists and watches to records; a slower path names what is wrong in an odd object."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.schema import convert
from kubesched.kube.errors import UnreadableAnswerError

T = TypeVar("T")
K = TypeVar("K", bound=KubeObject)

Raw = bytes | msgspec.Raw


class Identity(NamedTuple):
    """The key, the uid and the version of an object. A version that is no number is 0, and older than no other."""

    key: str
    uid: str
    version: int


class UnreadableObject(NamedTuple):
    """An object of a list or a watch that cannot be read, and why. Its identity has the fields that can be read."""

    identity: Identity
    why: Exception


class ListPage(NamedTuple, Generic[T]):
    """Some of the objects of a list; `more` is the token for the rest."""

    objects: list[T]
    resource_version: str
    more: str
    unreadable: Sequence[UnreadableObject] = ()


class ObjectEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A line of a watch that is about an object."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T


class Codec(ABC, Generic[T]):
    """Reads objects of one kind."""

    @abstractmethod
    def decode(self, raw: Raw) -> T: ...

    @abstractmethod
    def identity(self, obj: T) -> Identity: ...

    def event(self, line: bytes) -> ObjectEvent[T] | None:
        """A line of a watch, type and object at once; None if it is about no object, or has to be read step by step."""
        return None

    def decode_item(self, raw: Raw, header: dict[str, str]) -> T:
        """One object of a list, which does not repeat what is in the header: its apiVersion and kind."""
        return self.decode(raw)

    def page(self, body: bytes) -> ListPage[T]:
        """A page of a list: the objects that can be read, and the others as `UnreadableObject`."""
        read = raw_list_of(body)
        header = {"apiVersion": read.api_version, "kind": read.kind.removesuffix("List")} if read.kind else {}
        objects: list[T] = []
        unreadable: list[UnreadableObject] = []
        for raw in read.items or ():
            try:
                obj = self.decode_item(raw, header)
                self.identity(obj)
            except Exception as error:  # whatever is odd about one object is no reason to lose the others
                unreadable.append(UnreadableObject(identity_in(raw), error))
            else:
                objects.append(obj)
        return ListPage(objects, read.metadata.resource_version, read.metadata.continue_, unreadable)


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMeta = _BookmarkMeta()


class _ListMeta(msgspec.Struct, frozen=True, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    resource_version: str = ""
    continue_: str = ""


class _List(msgspec.Struct, Generic[T], rename={"api_version": "apiVersion"}):
    items: list[T] | None = None
    metadata: _ListMeta = _ListMeta()
    api_version: str = ""
    kind: str = ""


class _Name(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Name = _Name()


_DEEPEST = 200
"""Levels of nesting that are read; no kind of Kubernetes has a tenth of that."""
_LONGEST_VERSION = 20
_STRINGS_AND_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_events = msgspec.json.Decoder(WatchEvent)
_bookmarks = msgspec.json.Decoder(_Bookmark)
_raw_lists = msgspec.json.Decoder(_List[msgspec.Raw])
_named = msgspec.json.Decoder(_Named)
_anything = msgspec.json.Decoder(Any)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def watch_event(line: bytes) -> WatchEvent:
    try:
        return _decode(_events, line)
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"a line of the watch cannot be read: {error}: {line[:100]!r}") from None


def bookmark(raw: msgspec.Raw) -> tuple[str, bool]:
    """The version that the watch has reached, and whether this is the end of a streamed list."""
    try:
        meta = _bookmarks.decode(raw).metadata
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"a bookmark cannot be read: {error}") from None
    return meta.resource_version, (meta.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


def version_number(resource_version: str) -> int:
    is_number = resource_version.isascii() and resource_version.isdigit() and len(resource_version) <= _LONGEST_VERSION
    return int(resource_version) if is_number else 0


class RecordCodec(Codec[K]):
    """Objects as records of `api`: fields that a record does not have (managedFields among them) are never built."""

    def __init__(self, kind: type[K]) -> None:
        self._kind = kind
        self._objects = msgspec.json.Decoder(kind)
        self._events: msgspec.json.Decoder[ObjectEvent[K]] = msgspec.json.Decoder(ObjectEvent[kind])  # type: ignore[valid-type]
        self._lists: msgspec.json.Decoder[_List[K]] = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]

    def decode(self, raw: Raw) -> K:
        try:
            return _decode(self._objects, raw)
        except msgspec.ValidationError:
            return self._leniently(raw)
        except msgspec.DecodeError as error:
            raise UnreadableAnswerError(f"a {self._kind.__name__} cannot be read: {error}") from None

    def event(self, line: bytes) -> ObjectEvent[K] | None:
        try:
            return self._events.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return None

    def page(self, body: bytes) -> ListPage[K]:
        try:
            read = _decode(self._lists, body)
        except msgspec.DecodeError:
            return super().page(body)
        return ListPage(read.items or [], read.metadata.resource_version, read.metadata.continue_)

    def identity(self, obj: K) -> Identity:
        meta = obj.metadata
        return Identity(obj.key, meta.uid, version_number(meta.resource_version))

    def _leniently(self, raw: Raw) -> K:
        """Read it as Go does: null is absent, and unknown values of an enumeration are accepted."""
        obj, mistakes = convert(_decode(_anything, raw), self._kind, shape_only=True)
        if obj is None:
            raise UnreadableAnswerError(f"a {self._kind.__name__} cannot be read: {mistakes[0]}")
        return obj


class WithOriginal(NamedTuple, Generic[K]):
    """A record, and if an extender may see the object, its JSON as it was sent, without managedFields."""

    record: K
    original: bytes | None


class WithOriginalCodec(Codec[WithOriginal[K]]):
    """Records together with the originals of those that are wanted."""

    def __init__(self, kind: type[K], api_version: str, wants: Callable[[K], bool]) -> None:
        self._records = RecordCodec(kind)
        # Which the items of a list do not repeat:
        self._header = {"apiVersion": api_version, "kind": kind.__name__}
        self._wants = wants

    def decode(self, raw: Raw) -> WithOriginal[K]:
        record = self._records.decode(raw)
        return WithOriginal(record, self._original(raw) if self._wants(record) else None)

    def identity(self, obj: WithOriginal[K]) -> Identity:
        return self._records.identity(obj.record)

    def _original(self, raw: Raw) -> bytes:
        fields, meta = _fields_of(raw)
        return msgspec.json.encode({**self._header, **fields, "metadata": meta})


class DictCodec(Codec[dict[str, Any]]):
    """Objects of any kind as plain dictionaries, without managedFields."""

    def decode(self, raw: Raw) -> dict[str, Any]:
        return self.decode_item(raw, {})

    def decode_item(self, raw: Raw, header: dict[str, str]) -> dict[str, Any]:
        fields, meta = _fields_of(raw)
        obj: dict[str, Any] = {**header, **{name: _decode(_anything, value) for name, value in fields.items()}}
        obj["metadata"] = {name: _decode(_anything, value) for name, value in meta.items()}
        return obj

    def identity(self, obj: dict[str, Any]) -> Identity:
        meta: Mapping[str, str] = obj.get("metadata") or {}
        namespace, name = meta.get("namespace", ""), meta.get("name", "")
        key = f"{namespace}/{name}" if namespace else name
        return Identity(key, meta.get("uid", ""), version_number(meta.get("resourceVersion", "")))


def _fields_of(raw: Raw) -> tuple[dict[str, msgspec.Raw], dict[str, msgspec.Raw]]:
    """The fields of an object, and those of its metadata without managedFields, which are long and not needed."""
    try:
        fields = _decode(_raw_fields, raw)
        meta = _decode(_raw_fields, fields.pop("metadata", b"{}"))
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"an object cannot be read: {error}") from None
    meta.pop("managedFields", None)
    return fields, meta


def identity_in(raw: Raw) -> Identity:
    """The identity of an object that cannot be read. Fields that cannot be read either are empty."""
    try:
        meta = _decode(_named, raw).metadata
    except (msgspec.DecodeError, RecursionError):
        return Identity("", "", 0)
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return Identity(key, meta.uid, version_number(meta.resource_version))


def raw_list_of(body: bytes) -> _List[msgspec.Raw]:
    try:
        return _decode(_raw_lists, body)
    except msgspec.DecodeError as error:
        raise UnreadableAnswerError(f"a list cannot be read: {error}") from None


def _decode(decoder: msgspec.json.Decoder[T], raw: Raw) -> T:
    """Decode JSON, and cut off what is nested too deeply for Python: anyone may write that into a claim."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        return decoder.decode(_cut_off(bytes(raw)))


def _cut_off(text: bytes) -> bytes:
    """The same JSON, with null for every list and object that is nested too deeply."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _STRINGS_AND_BRACKETS.finditer(text):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(text[begin : token.start()] + b"null")
        elif token[0] in (b"}", b"]"):
            if depth == _DEEPEST + 1:
                begin = token.end()
            depth -= 1
    return b"".join((*kept, text[begin:]))

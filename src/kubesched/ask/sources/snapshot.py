"""Snapshots: a cluster in a file, as compressed JSON with only the fields that scheduling looks at."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec

from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.errors import UserError
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.ask.output import API_VERSION
from kubesched.ask.sources.reading import ClusterReading, FoundConfiguration, Objects, UnreadableKind
from kubesched.kube.decoding import RecordCodec
from kubesched.kube.errors import KubeError
from kubesched.scheduler.recording import opened_for_owner
from kubesched.simulate.kinds import WORKLOADS

KIND = "ClusterSnapshot"
_MAGIC = b"\x1f\x8b"
_LEVEL = 3
"""Higher ones take three times as long for a tenth less."""
_LOOKED_AT = 512
"""Bytes at the beginning, which name the kind."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""A copy of the whole manifest, with whatever is in its environment variables."""


class SnapshotError(UserError):
    """A file that is no snapshot, or none that can be read or written."""


class _Document(msgspec.Struct, rename="camel", omit_defaults=True):
    """What is in the file."""

    api_version: str
    kind: str
    objects: dict[str, msgspec.Raw]
    taken_at: str = ""
    server_version: str = ""
    anonymized: bool = False
    unreadable: tuple[str, ...] = ()
    configuration: str = ""
    configuration_origin: str = ""


class Snapshot:
    """A snapshot in a file, its objects not yet read."""

    def __init__(self, file: str, document: _Document) -> None:
        self.file = file
        self._document = document

    @property
    def version(self) -> str:
        """Of the API server that it was taken from."""
        return self._document.server_version

    def configuration(self) -> FoundConfiguration:
        """The configuration of the scheduler that was in charge, as far as it was found."""
        return FoundConfiguration(self._document.configuration, self._document.configuration_origin)

    def read(self, *, workloads: bool = False, custom: Iterable[str] = ()) -> ClusterReading:
        """All that scheduling looks at; with `workloads`, also what makes pods. Raises SnapshotError."""
        document = self._document
        records = {name: kind.record for name, kind in KINDS.items()} | (WORKLOADS if workloads else {})
        objects: dict[str, tuple[KubeObject, ...]] = {}
        try:
            for name, raw in document.objects.items():
                if name in records:
                    objects[name] = tuple(RecordCodec(records[name]).page(b'{"items":%b}' % bytes(raw)).objects)
                elif name in custom:
                    contents = msgspec.json.decode(raw, type=list[dict[str, object]])
                    objects[name] = tuple(read_custom(name, content) for content in contents)
        except (KubeError, msgspec.DecodeError) as error:
            raise SnapshotError(f"{self.file}: objects.{name}: {error}") from None
        return ClusterReading(
            origin=self.file,
            objects=objects,
            unreadable=tuple(map(UnreadableKind.of, document.unreadable)),
            server_version=document.server_version,
            taken_at=document.taken_at,
            configuration=self.configuration(),
        )


def open_snapshot(file: str) -> Snapshot | None:
    """The snapshot in a file; None if the file is something else, or is not there. Raises SnapshotError."""
    try:
        with open(file, "rb") as stream:
            beginning = stream.read(_LOOKED_AT)
    except (OSError, ValueError):
        return None  # reading it as a manifest says what is wrong
    is_compressed = beginning.startswith(_MAGIC)
    try:
        if is_compressed:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, _LOOKED_AT)
        if f'"{KIND}"'.encode() not in beginning:
            return None
        data = Path(file).read_bytes()
        document = msgspec.json.decode(gzip.decompress(data) if is_compressed else data, type=_Document)
    except (OSError, EOFError, zlib.error) as error:
        raise SnapshotError(f"{file}: damaged: {error}") from None
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{file}: {error}") from None
    if (document.api_version, document.kind) != (API_VERSION, KIND):
        got = f"{document.kind} of {document.api_version}"
        raise SnapshotError(f"{file}: expected a {KIND} of {API_VERSION}, got {got}")
    return Snapshot(file, document)


def write_snapshot(reading: ClusterReading, file: str, *, anonymized: bool = False) -> int:
    """Write a file that only its owner may read, whole or not at all. Its size in bytes. Raises SnapshotError."""
    partial = f"{file}.partial"
    try:
        with open(partial, "wb", opener=opened_for_owner) as stream:
            write_to(stream, reading, anonymized=anonymized)
        size = os.path.getsize(partial)
        os.replace(partial, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise SnapshotError(f"{file}: {error.strerror or error}") from None
    return size


def write_to(stream: IO[bytes], reading: ClusterReading, *, anonymized: bool = False) -> None:
    """The same to an open stream. Kind by kind: a large cluster is not held in memory a second time."""
    head = _Document(
        api_version=API_VERSION,
        kind=KIND,
        objects={},
        taken_at=reading.taken_at,
        server_version=reading.server_version,
        anonymized=anonymized,
        unreadable=tuple(unreadable.kind for unreadable in reading.unreadable),
        configuration=reading.configuration.text,
        configuration_origin=reading.configuration.origin,
    )
    fields = msgspec.to_builtins(head)
    fields.pop("objects", None)
    encoder = msgspec.json.Encoder()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=_LEVEL, mtime=0) as packed:
        out = io.BufferedWriter(packed, 1 << 20)
        out.write(encoder.encode(fields)[:-1] + b',"objects":{')
        _write_objects(out, reading.objects, encoder)
        out.write(b"}}\n")
        out.flush()


def _write_objects(out: IO[bytes], objects: Objects, encoder: msgspec.json.Encoder) -> None:
    for i, (name, records) in enumerate(objects.items()):
        out.write(b"," * bool(i) + encoder.encode(name) + b":[")
        for j, record in enumerate(records):
            out.write(b",\n" if j else b"\n")
            out.write(encoder.encode(record.content if isinstance(record, CustomObject) else _strip(record)))
        out.write(b"]")


def _strip(record: KubeObject) -> KubeObject:
    annotations = record.metadata.annotations
    if _LAST_APPLIED not in annotations:
        return record
    kept = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    return msgspec.structs.replace(record, metadata=msgspec.structs.replace(record.metadata, annotations=kept))

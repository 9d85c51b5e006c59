"""A placement test as it is written: a cluster, what is put on it, and what has to be true then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.meta import Record
from kubesched.api.node import Taint
from kubesched.api.quantity import QuantityText
from kubesched.api.schema import Mistake, convert, described
from kubesched.api.yaml import YamlError, documents
from kubesched.ask.output import API_VERSION, camel
from kubesched.simulate.files import SUFFIXES, files_below

KIND: Literal["PlacementTest"] = "PlacementTest"
Positive = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Labels = dict[str, str]


class CaseError(UserError):
    """Cases that cannot be read: the file, the document, the field, and what was expected."""


class NodesOfCase(Record, frozen=True):
    """Nodes that are alike: so many, in turns in these zones."""

    name: str
    count: Positive = 1
    zones: tuple[str, ...] = ()
    labels: Labels = {}
    taints: tuple[Taint, ...] = ()
    capacity: dict[str, QuantityText] = {}


class CaseCluster(Record, frozen=True):
    """Where pods are to land: files, a snapshot, nodes in a few words, or all of it."""

    files: tuple[str, ...] = ()
    """Manifests, directories, a snapshot; relative to the file of the case."""
    nodes: tuple[NodesOfCase, ...] = ()


class CaseChanges(Record, frozen=True):
    """What is done to the cluster first; as the options of `kubesched what-if`."""

    drain: tuple[str, ...] = ()
    lose: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    scale: tuple[str, ...] = ()


class SpreadOver(Record, frozen=True):
    """How evenly pods are to be spread."""

    topology_key: str
    max_skew: Positive | None = None
    min_domains: Positive | None = None


class AtMost(Record, frozen=True):
    """How many pods may share a domain."""

    pods: Positive
    per: str


class Expectation(Record, frozen=True):
    """Which pods are meant, and what has to be true of them. Without labels and a name, all are meant."""

    pods: Labels = {}
    namespace: str = ""
    name: str = ""
    """A pattern: `web-*`."""
    land_on: Labels | None = None
    never_on: Labels | None = None
    spread_over: SpreadOver | None = None
    at_most: AtMost | None = None
    pending: bool | str | None = None
    """With a text: what the reason has to contain."""
    preempts_only: Labels | None = None
    """The labels of pods that may be evicted for these. Without any label, no pod may."""
    fits: Positive | None = None
    survives_loss_of: str | None = None


class CaseMeta(Record, frozen=True):
    """What the case is called."""

    name: str


class CaseContent(Record, frozen=True):
    """What a document has."""

    api_version: Literal["kubesched.dev/v1alpha1"]
    kind: Literal["PlacementTest"]
    metadata: CaseMeta
    cluster: CaseCluster
    expect: tuple[Expectation, ...]
    config: str = ""
    seed: int = 0
    manifests: tuple[str, ...] = ()
    """Files whose pods and workloads are put on the cluster."""
    objects: tuple[dict[str, Any], ...] = ()
    """The same, written here."""
    changes: CaseChanges = CaseChanges()


class Case(Record, frozen=True):
    """A test, and where it stands."""

    file: str
    number: int
    """Of the document in the file."""
    content: CaseContent

    @property
    def name(self) -> str:
        return self.content.metadata.name

    @property
    def place(self) -> str:
        """What messages call it."""
        return f"{self.file}: document {self.number} ({KIND} {self.name})"

    def path(self, file: str) -> str:
        """A file that the case names."""
        return os.path.normpath(Path(self.file).parent / file)


_CHECKS = ("land_on", "never_on", "spread_over", "at_most", "pending", "preempts_only", "fits", "survives_loss_of")
"""The fields of an `Expectation` that expect something."""


def read_cases(paths: list[str]) -> list[Case]:
    """All cases in files and directories. Raises CaseError with all that is wrong."""
    lines: list[str] = []
    cases = [case for path in paths for file in _files(path, lines) for case in _cases(file, lines)]
    if lines:
        raise CaseError(*lines)
    return cases


def _files(path: str, lines: list[str]) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    files = [str(file) for file in files_below(Path(path)) if _has_cases(file)]
    if not files:
        lines.append(f"{path}: no document of kind {KIND} in this directory (looked in {', '.join(SUFFIXES)})")
    return files


def _has_cases(file: Path) -> bool:
    """Other files, such as the manifests of cases, may be beside them."""
    try:
        return file.is_file() and KIND.encode() in file.read_bytes()
    except OSError:
        return True  # reading it as a case says what is wrong


def _cases(file: str, lines: list[str]) -> list[Case]:
    cases: list[Case] = []
    try:
        text = Path(file).read_text(encoding="utf-8")
        for number, document in enumerate(documents(text), 1):
            value = document.value
            if value is None:
                continue
            if not isinstance(value, dict):
                lines.append(f"{file}: document {number}: expected a {KIND}, got {described(value)}")
                continue
            content, mistakes = convert(value, CaseContent, unknown="error")
            mistakes += _meaningless(content) if content is not None else []
            lines += [f"{file}: document {number}: {mistake}" for mistake in mistakes]
            if content is not None:
                cases.append(Case(file=file, number=number, content=content))
    except OSError as error:
        lines.append(f"{file}: {error.strerror or error}")
    except (UnicodeDecodeError, YamlError) as error:
        lines.append(f"{file}: {error if isinstance(error, YamlError) else 'not UTF-8 text'}")
    if not cases and not lines:
        lines.append(f"{file}: expected a document of kind {KIND} of {API_VERSION}, got nothing")
    return cases


def _meaningless(case: CaseContent) -> list[Mistake]:
    """Mistakes of a case that can be read: no cluster, no expectation, or one that expects nothing."""
    mistakes = []
    if not case.cluster.files and not case.cluster.nodes:
        mistakes.append(Mistake("cluster", "expected files, nodes or both"))
    if not case.expect:
        mistakes.append(Mistake("expect", "expected at least one expectation"))
    for i, expectation in enumerate(case.expect):
        if all(getattr(expectation, check) is None for check in _CHECKS):
            mistakes.append(Mistake(f"expect[{i}]", f"expected one of {', '.join(map(camel, _CHECKS))}"))
        spread = expectation.spread_over
        if spread is not None and spread.max_skew is spread.min_domains is None:
            mistakes.append(Mistake(f"expect[{i}].spreadOver", "expected maxSkew, minDomains or both"))
    return mistakes

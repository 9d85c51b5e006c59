"""Interns the namespaces and topology keys of affinity terms: each set of namespaces and each key is kept once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.state.changes import ChangeLog
from kubesched.state.columns import Bool, grown
from kubesched.state.facts import Term
from kubesched.state.label_index import SelectorIndex

_BYTES_OF_VIEWS = 4 << 20
_FEWEST_VIEWS = 8

H = TypeVar("H", bound=Hashable)


class _Numbered(Generic[H]):
    """Things that are in use, each with a small number of its own."""

    def __init__(self) -> None:
        self.numbers: dict[H, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """More than the largest number."""
        return len(self._uses)

    def take(self, thing: H) -> tuple[int, bool]:
        """The number of a thing, and whether it is new."""
        known = self.numbers.get(thing)
        if known is not None:
            self._uses[known] += 1
            return known, False
        if not self._free:
            self._free.append(len(self._uses))
            self._uses.append(0)
        number = self.numbers[thing] = self._free.pop()
        self._uses[number] = 1
        return number, True

    def give_back(self, thing: H) -> bool:
        """End one use of a thing. Whether that was its last use."""
        number = self.numbers[thing]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self.numbers[thing]
            self._free.append(number)
        return not self._uses[number]


class TermScope(NamedTuple):
    """The namespaces that a term looks into."""

    namespaces: frozenset[str]
    selector: Selector

    @classmethod
    def of(cls, term: Term) -> TermScope:
        return cls(term.namespaces, term.namespace_selector)

    def includes(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace in self.namespaces or self.selector.matches(labels)


class _NamespaceView(NamedTuple):
    """Which scopes a namespace is in, as of a position in the log of scopes."""

    labels: Mapping[str, str]
    position: int
    scopes: Bool


class TermPlaces:
    """The scopes and the topologies of terms, by number."""

    def __init__(self) -> None:
        self._scopes: _Numbered[TermScope] = _Numbered()
        self._scope_of: dict[int, TermScope] = {}
        self._changes: ChangeLog[int] = ChangeLog()
        """The numbers of scopes that came or went."""
        self._views: dict[str, _NamespaceView] = {}
        self._named: dict[str, set[int]] = {}
        self._selecting: SelectorIndex[TermScope] = SelectorIndex()
        self._topologies: _Numbered[str] = _Numbered()

    def take(self, term: Term) -> tuple[int, int]:
        """The numbers of its scope and of its topology."""
        scope = TermScope.of(term)
        number, is_new = self._scopes.take(scope)
        if is_new:
            self._scope_of[number] = scope
            self._changes.record(number)
            self._selecting.put(scope.selector, scope)
            for namespace in scope.namespaces:
                self._named.setdefault(namespace, set()).add(number)
        return number, self._topologies.take(term.topology_key)[0]

    def give_back(self, term: Term) -> None:
        scope = TermScope.of(term)
        number = self._scopes.numbers[scope]
        if self._scopes.give_back(scope):
            del self._scope_of[number]
            self._changes.record(number)
            self._selecting.discard(scope.selector, scope)
            for namespace in scope.namespaces:
                self._named[namespace].discard(number)
                if not self._named[namespace]:
                    del self._named[namespace]
        self._topologies.give_back(term.topology_key)

    def scopes_including(self, namespace: str, labels: Mapping[str, str]) -> Bool:
        """Of all scopes, those that a namespace with such labels is in. To be read only: it is kept."""
        view = self._views.pop(namespace, None)
        changed = self._changes.since(view.position) if view is not None and view.labels == labels else None
        if view is None or changed is None:
            scopes = self._find_scopes(namespace, labels)
        else:
            scopes = grown(view.scopes, len(self._scopes))
            for number in changed:
                scope = self._scope_of.get(number)
                scopes[number] = scope is not None and scope.includes(namespace, labels)
        self._views[namespace] = _NamespaceView(labels, self._changes.position, scopes)  # last in line to be forgotten
        if len(self._views) > max(_FEWEST_VIEWS, _BYTES_OF_VIEWS // (len(scopes) + 1)):
            del self._views[next(iter(self._views))]
        return scopes

    def _find_scopes(self, namespace: str, labels: Mapping[str, str]) -> Bool:
        scopes = np.zeros(len(self._scopes), dtype=np.bool_)
        scopes[list(self._named.get(namespace, ()))] = True
        for scope in self._selecting.candidates(labels):
            if scope.selector.matches(labels):
                scopes[self._scopes.numbers[scope]] = True
        return scopes

    def topologies_among(self, keys: Collection[str]) -> Bool:
        """Of all topologies, those that are among the labels of some node."""
        numbers = self._topologies.numbers
        topologies = np.zeros(len(self._topologies), dtype=np.bool_)
        fewer, others = (keys, numbers) if len(keys) < len(numbers) else (numbers, keys)
        for key in fewer:
            if key in others:
                topologies[numbers[key]] = True
        return topologies

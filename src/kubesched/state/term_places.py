"""Interns the namespaces and topology keys of affinity terms: each set of namespaces and each key gets a number."""

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
    """Values in use, each with a small number of its own."""

    def __init__(self) -> None:
        self.numbers: dict[H, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """More than the largest number."""
        return len(self._uses)

    def take(self, value: H) -> tuple[int, bool]:
        """The number of a value, and whether it is new."""
        number = self.numbers.get(value)
        if number is not None:
            self._uses[number] += 1
            return number, False
        if not self._free:
            self._free.append(len(self._uses))
            self._uses.append(0)
        number = self.numbers[value] = self._free.pop()
        self._uses[number] = 1
        return number, True

    def give_back(self, value: H) -> bool:
        """End one use of a value. Whether that was its last use."""
        number = self.numbers[value]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self.numbers[value]
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
    """The scopes that a namespace is in, as of a position in the log of scopes."""

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
        self._by_namespace: dict[str, set[int]] = {}
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
                self._by_namespace.setdefault(namespace, set()).add(number)
        return number, self._topologies.take(term.topology_key)[0]

    def give_back(self, term: Term) -> None:
        scope = TermScope.of(term)
        number = self._scopes.numbers[scope]
        if self._scopes.give_back(scope):
            del self._scope_of[number]
            self._changes.record(number)
            self._selecting.discard(scope.selector, scope)
            for namespace in scope.namespaces:
                self._by_namespace[namespace].discard(number)
                if not self._by_namespace[namespace]:
                    del self._by_namespace[namespace]
        self._topologies.give_back(term.topology_key)

    def scopes_including(self, namespace: str, labels: Mapping[str, str]) -> Bool:
        """By number whether a namespace with such labels is in the scope. Cached: read it, do not change it."""
        view = self._views.pop(namespace, None)
        changed = self._changes.since(view.position) if view is not None and view.labels == labels else None
        if view is None or changed is None:
            scopes = self._find_scopes(namespace, labels)
        else:
            scopes = grown(view.scopes, len(self._scopes))
            for number in changed:
                scope = self._scope_of.get(number)
                scopes[number] = scope is not None and scope.includes(namespace, labels)
        self._views[namespace] = _NamespaceView(labels, self._changes.position, scopes)  # the most recently used
        if len(self._views) > max(_FEWEST_VIEWS, _BYTES_OF_VIEWS // (len(scopes) + 1)):
            del self._views[next(iter(self._views))]
        return scopes

    def _find_scopes(self, namespace: str, labels: Mapping[str, str]) -> Bool:
        scopes = np.zeros(len(self._scopes), dtype=np.bool_)
        scopes[list(self._by_namespace.get(namespace, ()))] = True
        for scope in self._selecting.candidates(labels):
            if scope.selector.matches(labels):
                scopes[self._scopes.numbers[scope]] = True
        return scopes

    def topologies_among(self, keys: Collection[str]) -> Bool:
        """By number whether the topology is one of these."""
        numbers = self._topologies.numbers
        topologies = np.zeros(len(self._topologies), dtype=np.bool_)
        fewer, others = (keys, numbers) if len(keys) < len(numbers) else (numbers, keys)
        for key in fewer:
            if key in others:
                topologies[numbers[key]] = True
        return topologies

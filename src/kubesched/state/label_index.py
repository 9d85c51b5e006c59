"""Two indices by label: of labelled objects, for those that a selector matches; of selectors, for those that match.

A lookup costs time by the size of its answer, independent of how many objects or selectors are indexed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from kubesched.api.selectors import Requirement, Selector
from kubesched.state.columns import Bool, LabelColumn, Rows, grown

I = TypeVar("I", bound=Hashable)  # noqa: E741

_FEW = 32
"""Up to so many items are compared one by one: NumPy takes longer to start."""
_COLUMNS_KEPT = 32
_NO_IDS: Rows = np.zeros(0, dtype=np.intp)


class LabelIndex:
    """Items with labels, by id."""

    def __init__(self) -> None:
        self._labels: dict[int, Mapping[str, str]] = {}
        self._with_key: dict[str, set[int]] = {}
        self._columns: dict[str, LabelColumn] = {}
        self._present: Bool = np.zeros(64, dtype=np.bool_)

    def __len__(self) -> int:
        """More than the largest id."""
        return len(self._present)

    def put(self, item: int, labels: Mapping[str, str]) -> None:
        if item >= len(self._present):
            self._present = grown(self._present, 2 * item)
            for column in self._columns.values():
                column.extend(2 * item)
        self._labels[item] = labels
        self._present[item] = True
        for key, value in labels.items():
            self._with_key.setdefault(key, set()).add(item)
            if key in self._columns:
                self._columns[key].set(item, value)

    def remove(self, item: int) -> None:
        self._present[item] = False
        for key in self._labels.pop(item):
            items = self._with_key[key]
            items.discard(item)
            if key in self._columns:
                self._columns[key].set(item, None)
            if not items:
                del self._with_key[key]
                self._columns.pop(key, None)

    def find(self, selector: Selector) -> Rows | Bool:
        """The items that a selector matches: their ids, if they are few, or a mask over all ids."""
        if selector.nothing:
            return _NO_IDS
        narrowest: set[int] | None = None
        for requirement in selector.requirements:
            if not requirement.accepts(None):
                items = self._with_key.get(requirement.key)
                if items is None:
                    return _NO_IDS
                if narrowest is None or len(items) < len(narrowest):
                    narrowest = items
        if narrowest is not None and len(narrowest) <= _FEW:
            return np.array([item for item in narrowest if selector.matches(self._labels[item])], dtype=np.intp)
        matching = self._present
        for requirement in selector.requirements:
            if requirement.key in self._with_key:  # otherwise it accepts them all
                matching = matching & self._accept(requirement)
        return matching

    def _accept(self, requirement: Requirement) -> Bool:
        key = requirement.key
        column = self._columns.pop(key, None)
        if column is None:
            column = LabelColumn(key, len(self))
            for item in self._with_key[key]:
                column.set(item, self._labels[item][key])
        self._columns[key] = column  # the most recently used
        if len(self._columns) > _COLUMNS_KEPT:
            del self._columns[next(iter(self._columns))]
        return column.meets(requirement, column.ids)


class SelectorIndex(Generic[I]):
    """Selectors, each for an item. One item may have several selectors."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, ...], dict[I, int]] = {}

    def put(self, selector: Selector, item: I) -> None:
        for anchor in anchors(selector):
            items = self._items.setdefault(anchor, {})
            items[item] = items.get(item, 0) + 1

    def discard(self, selector: Selector, item: I) -> None:
        """Undo `put`."""
        for anchor in anchors(selector):
            items = self._items[anchor]
            items[item] -= 1
            if not items[item]:
                del items[item]
                if not items:
                    del self._items[anchor]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[I]:
        """The items of selectors that may match such labels, and perhaps a few others."""
        if self._items:
            for label in labels_as_anchors(labels):
                yield from self._items.get(label, ())


def anchors(selector: Selector) -> Iterator[tuple[str, ...]]:
    """Anchors of a selector: labels that it matches have at least one of them (`labels_as_anchors`)."""
    if selector.nothing:
        return
    narrowest: Requirement | None = None
    for requirement in selector.requirements:
        if requirement.operator == "In":
            if narrowest is None or narrowest.operator != "In" or len(requirement.values) < len(narrowest.values):
                narrowest = requirement
        elif narrowest is None and requirement.operator == "Exists":
            narrowest = requirement
    if narrowest is None:
        yield ()
    elif narrowest.operator == "Exists":
        yield (narrowest.key,)
    else:
        for value in narrowest.values:
            yield narrowest.key, value


def labels_as_anchors(labels: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """All anchors that an item with these labels has."""
    yield ()
    for key, value in labels.items():
        yield key, value
        yield (key,)

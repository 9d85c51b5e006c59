"""The arrays of all tables: their types, growing, values interned to small integers, labels of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.api.selectors import Requirement, parse_int64

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
"""Indices of rows of the node table, a row per node."""
ResourceIds = npt.NDArray[np.intp]
"""Ids of resources: indices of their columns in `allocatable`, `requested` and the like."""

ABSENT = -1
"""The id of "no such value" in a column of interned values."""

H = TypeVar("H", bound=Hashable)
A = TypeVar("A", bound=npt.NDArray[Any])


def grown(array: A, length: int, fill: int | bool = 0) -> A:
    """A copy of the array with its last axis extended to `length`."""
    wider = np.full((*array.shape[:-1], length), fill, dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider  # type: ignore[return-value]


class Interner(Generic[H]):
    """Gives each distinct value in use a small integer, and takes it back when it is not used any more.

    Ids are reused, so a cluster that replaces its nodes for years does not grow; `version` changes whenever an id
    changes its meaning.
    """

    def __init__(self) -> None:
        self.values: list[H | None] = []
        self.version = 0
        self._ids: dict[H, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """The length of a table indexed by id: more than the largest id in use."""
        return len(self.values)

    @property
    def distinct(self) -> int:
        """How many values are in use."""
        return len(self._ids)

    def id_of(self, value: H) -> int:
        """The id of a value in use, or ABSENT."""
        return self._ids.get(value, ABSENT)

    def acquire(self, value: H) -> int:
        value_id = self._ids.get(value)
        if value_id is not None:
            self._uses[value_id] += 1
            return value_id
        self.version += 1
        if self._free:
            value_id = self._free.pop()
            self.values[value_id], self._uses[value_id] = value, 1
        else:
            value_id = len(self.values)
            self.values.append(value)
            self._uses.append(1)
        self._ids[value] = value_id
        return value_id

    def release(self, value_id: int) -> None:
        if value_id == ABSENT:
            return
        self._uses[value_id] -= 1
        if self._uses[value_id] == 0:
            self.version += 1
            value = self.values[value_id]
            assert value is not None
            del self._ids[value]
            self.values[value_id] = None
            self._free.append(value_id)


class LabelColumn:
    """One label key over all rows. A topology is just such a column."""

    def __init__(self, key: str, length: int) -> None:
        self.key = key
        self.ids: Int32 = np.full(length, ABSENT, dtype=np.int32)
        self.values: Interner[str] = Interner()
        self.carriers = 0
        """How many rows have the label."""
        self.version = 0
        """Changes whenever a row gets, loses or changes its value."""
        self._numbers: tuple[int, Bool, Int64] | None = None

    def set(self, row: int, value: str | None) -> None:
        old = int(self.ids[row])
        new = ABSENT if value is None else self.values.acquire(value)
        self.values.release(old)
        if new != old:
            self.carriers += (new != ABSENT) - (old != ABSENT)
            self.ids[row] = new
            self.version += 1

    def extend(self, length: int) -> None:
        self.ids = grown(self.ids, length, ABSENT)

    def sum_by_value(self, counts: Int32 | Int64) -> Int64:
        """The sum of a column of counts per value of this label: pods per zone. The last entry, index -1, is 0."""
        sums = np.bincount(self.ids[: len(counts)] + 1, weights=counts, minlength=len(self.values) + 1)
        result = np.zeros(len(sums), dtype=np.int64)
        result[:-1] = sums[1:]
        return result

    def meets(self, requirement: Requirement, ids: Int32) -> Bool:
        """Per id of a value whether the requirement accepts it."""
        match requirement.operator:
            case "Exists":
                return np.not_equal(ids, ABSENT)
            case "DoesNotExist":
                return np.equal(ids, ABSENT)
            case "In" | "NotIn":
                value_ids = [self.values.id_of(value) for value in requirement.values]
                is_listed = is_one_of(ids, [value_id for value_id in value_ids if value_id != ABSENT])
                return is_listed if requirement.operator == "In" else ~is_listed
            case _:
                return self._compare(requirement)[ids]

    def _compare(self, requirement: Requirement) -> Bool:
        """Per value whether its number is greater, or less; the last entry, index -1, is for an absent label."""
        if self._numbers is None or self._numbers[0] != self.values.version:
            numbers = [None if value is None else parse_int64(value) for value in self.values.values]
            numbers.append(None)
            self._numbers = (
                self.values.version,
                np.array([number is not None for number in numbers]),
                np.array([number or 0 for number in numbers], dtype=np.int64),
            )
        _, is_number, number_of = self._numbers
        bound = parse_int64(next(iter(requirement.values), ""))
        if bound is None:
            return np.zeros(len(is_number), dtype=np.bool_)
        return is_number & (number_of > bound if requirement.operator == "Gt" else number_of < bound)


def is_one_of(ids: npt.NDArray[Any], candidates: Sequence[int]) -> Bool:
    """Where the id is one of the candidates."""
    if not candidates:
        return np.zeros(len(ids), dtype=np.bool_)
    if len(candidates) == 1:
        return np.asarray(ids == candidates[0])
    return np.isin(ids, candidates)

"""A change to a cluster: objects in, objects out. Which there are: node_changes.py and workload_changes.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject

Objects = tuple[KubeObject, ...]


class ChangeError(UserError):
    """A change that is not possible: what it names is not there, or it cannot be read."""


class Change(Protocol):
    """Something that may be done to a cluster. `str` says it in the words of the command line."""

    def apply(self, objects: Objects) -> Objects:
        """The objects once it has been done, in their order. Raises ChangeError."""


def applied(objects: Iterable[KubeObject], changes: Iterable[Change]) -> Objects:
    """The objects once all changes have been made, one after another. Raises ChangeError with all that is wrong."""
    known, lines = tuple(objects), list[str]()
    for change in changes:
        try:
            known = change.apply(known)
        except ChangeError as error:
            lines += error.lines
    if lines:
        raise ChangeError(*lines)
    return known

"""What the rules of a kind consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from kubesched.admission import names
from kubesched.admission.metadata import NameRule
from kubesched.admission.mistakes import Mistakes
from kubesched.api.kinds import Object, Resource


class Reader(Protocol):
    """What admission may look up in the cluster."""

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None: ...

    def select(self, resource: Resource, namespace: str | None = None) -> Iterable[Object]: ...


Defaults = Callable[[Object], None]
"""Sets in place what the client left out; also done on updates, so it must change nothing the second time."""
Admit = Callable[[Object, Reader], None]
"""Sets in place, once at creation, what depends on other objects; may refuse."""
CarryOver = Callable[[Object, Object], None]
"""Sets in the new object what an update may leave out because the old one has it; takes the new, then the old."""
Check = Callable[[Object, Mistakes], None]
CheckUpdate = Callable[[Object, Object, Mistakes], None]
"""Takes the new object, then the old."""
AdmitUpdate = Callable[[Object, Object, Reader], None]
"""May refuse an update because of other objects; takes the new object, then the old."""
Take = Callable[[Object, Object, Mistakes], Object]
"""What is left of a write to a subresource: takes the new object, then the old, gives what is to be stored."""


NewStatus = Callable[[Object], Object]


def _no_status(_: Object) -> Object:
    return {}


def _nothing(*_: object) -> None:
    return None


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is special about one kind."""

    name: NameRule = names.subdomain
    defaults: Defaults = _nothing
    admit: Admit = _nothing
    carry_over: CarryOver = _nothing
    check: Check = _nothing
    check_create: Check = _nothing
    """What is asked of new objects besides."""
    immutable: tuple[str, ...] = ()
    """Fields that an update may not change."""
    check_update: CheckUpdate = _nothing
    """What is asked of updates besides."""
    admit_update: AdmitUpdate = _nothing
    new_status: NewStatus | None = _no_status
    """The status of a new object of a kind that has one as a subresource; None: as the client says."""
    takes: Mapping[str, Take] = {}
    """Subresources with a meaning of their own."""
    counts_generations: bool = False
    """Whether metadata.generation tells clients that the spec changed."""

"""What controllers are about to write may be reviewed by webhooks before: they are told to try again meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.api.reading import Reading

Patches = Sequence[Any]
"""JSON patches, one after another."""


class ControllerWrite(NamedTuple):
    """A write of a controller, as far as its next try is the same again."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    like: str
    """What tells writes without a name apart: how it begins, and the object's controller."""


class ReviewPendingError(Exception):
    """Webhooks are being asked about what a controller writes: it is to try again in a moment."""


class Reviewer(Protocol):
    """Asks webhooks about writes of controllers."""

    def __call__(
        self, write: ControllerWrite, old: Object | None, propose: Callable[[Patches], Object | None], /
    ) -> Patches: ...


class Reviewing(Reading):
    """Has the writes of controllers reviewed."""

    reviewer: Reviewer | None = None
    """Asked about writes of controllers, if there is one; of what clients write the server makes sure."""
    _is_controller = False

    @contextmanager
    def as_controller(self) -> Iterator[None]:
        """What is written within this block is a controller's."""
        self._is_controller = True
        try:
            yield
        finally:
            self._is_controller = False

    def _review(
        self,
        operation: str,
        resource: Resource,
        namespace: str,
        obj: Object,
        old: Object | None,
        propose: Callable[[Patches], Object | None],
        subresource: str = "",
    ) -> Patches:
        if self.reviewer is None or not self._is_controller:
            return ()
        metadata = obj["metadata"]
        owners = [owner.get("uid", "") for owner in metadata.get("ownerReferences") or ()]
        like = "/".join((metadata.get("generateName", ""), *owners))
        write = ControllerWrite(operation, resource, subresource, namespace, metadata.get("name", ""), like)
        return self.reviewer(write, old, propose)

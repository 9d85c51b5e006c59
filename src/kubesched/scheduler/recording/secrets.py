"""What recordings and written files keep to themselves: values of annotations, and who may read the file."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import IO, Any

from kubesched.api import well_known
from kubesched.api.device_claims import EXTENDED_RESOURCE_CLAIM

READ_BY_SCHEDULING = frozenset(
    (
        well_known.BIND_COMPLETED,
        well_known.BOUND_BY_CONTROLLER,
        well_known.DEFAULT_STORAGE_CLASS,
        well_known.MIGRATED_PLUGINS,
        well_known.SELECTED_NODE,
        well_known.STORAGE_CLASS,
        EXTENDED_RESOURCE_CLAIM,
    )
)
"""Annotations that decisions depend on. They are written as they are: without them nothing could be replayed."""


class AnnotationMask:
    """Puts a digest in the place of each value of an annotation.

    People keep passwords, webhooks and whole manifests in annotations. That a value changed still shows, since pods
    may be requeued by it, and so does which pods have the same; what it was does not, for the digest is salted.
    """

    def __init__(self) -> None:
        self._salt = os.urandom(16)

    def __call__(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object, given as plain values, with its annotations masked."""
        annotations = (obj.get("metadata") or {}).get("annotations")
        if not annotations:
            return obj
        masked = {
            key: value if key in READ_BY_SCHEDULING else self._digest(value) for key, value in annotations.items()
        }
        return {**obj, "metadata": {**obj["metadata"], "annotations": masked}}

    def _digest(self, value: object) -> str:
        return "masked " + blake2b(str(value).encode(), digest_size=6, key=self._salt).hexdigest()


def open_private(path: str) -> IO[str]:
    """An empty text file that only its owner may read, whatever was there before. Raises OSError."""
    return open(path, "w", encoding="utf-8", opener=opened_for_owner)


def opened_for_owner(path: str, flags: int) -> int:
    """For `open`: a new file is its owner's alone."""
    descriptor = os.open(path, flags, 0o600)
    if os.path.isfile(path):  # not a pipe or a device, which keep their modes
        os.fchmod(descriptor, 0o600)
    return descriptor

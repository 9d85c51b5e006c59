"""Groups and their versions, in the order in which Kubernetes prefers them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.api.kinds import Resource

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


def group_names(resources: Sequence[Resource]) -> list[str]:
    """The named groups in the order in which they first appear; the core group is not among them."""
    return [group for group in dict.fromkeys(resource.group for resource in resources) if group]


def group_versions(group: str, resources: Sequence[Resource]) -> list[str]:
    """The versions of a group, the preferred one first: v2, v1, v1beta1, v1alpha2, anything else by name."""
    return sorted({resource.version for resource in resources if resource.group == group}, key=_preference)


def resources_of(group: str, version: str, resources: Sequence[Resource]) -> list[Resource]:
    """What one version of a group serves, in order of the plural names."""
    chosen = [resource for resource in resources if resource.group == group and resource.version == version]
    return sorted(chosen, key=lambda resource: resource.plural)


def _preference(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STABILITY), 0, 0, version
    major, stability, minor = match.groups()
    return _STABILITY[stability], -int(major), -int(minor or 0), version

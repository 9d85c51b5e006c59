"""Semantic versions."""

from __future__ import annotations

from kubesched.cel import costs
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.functions import function, method
from kubesched.cel.versions import Semver, normalize_version, parse_semver


@function("semver(string) -> semver", price=costs.scan_first)
def to_semver(text: str) -> Semver:
    """Read a strict version."""
    return parse_semver(text)


@function("semver(string, bool) -> semver", price=costs.scan_first)
def to_semver_loosely(text: str, normalize: bool) -> Semver:
    """Read a version, made strict first if asked to."""
    return parse_semver(normalize_version(text) if normalize else text)


@function("isSemver(string) -> bool", price=costs.scan_first)
def is_semver(text: str) -> bool:
    """Whether semver() would work."""
    return is_semver_loosely(text, False)


@function("isSemver(string, bool) -> bool", price=costs.scan_first)
def is_semver_loosely(text: str, normalize: bool) -> bool:
    """Whether semver() would work."""
    try:
        to_semver_loosely(text, normalize)
    except AbsorbableError:
        return False
    return True


@method("semver.isGreaterThan(semver) -> bool")
def is_greater_than(left: Semver, right: Semver) -> bool:
    """Whether it is the later version."""
    return left > right


@method("semver.isLessThan(semver) -> bool")
def is_less_than(left: Semver, right: Semver) -> bool:
    """Whether it is the earlier version."""
    return left < right


@method("semver.compareTo(semver) -> int")
def compare_to(left: Semver, right: Semver) -> int:
    """-1, 0 or 1."""
    return (left > right) - (left < right)


@method("semver.major() -> int")
def major(version: Semver) -> int:
    """The first number."""
    return version.major


@method("semver.minor() -> int")
def minor(version: Semver) -> int:
    """The second number."""
    return version.minor


@method("semver.patch() -> int")
def patch(version: Semver) -> int:
    """The third number."""
    return version.patch

"""Semantic versions: parsing with the words of upstream's library, and their order."""

from __future__ import annotations

from functools import lru_cache, total_ordering

import msgspec

from kubesched.cel.errors import AbsorbableError

_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_MOST = 2**64 - 1

Identifier = tuple[bool, int | str]
"""One part of a prerelease: whether it is a word (those come after numbers), and the part."""


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """A version. Build metadata is kept for show but never compared."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[Identifier, ...] = ()
    text: str = ""

    def _rank(self) -> tuple[int, int, int, bool, tuple[Identifier, ...]]:
        return self.major, self.minor, self.patch, not self.prerelease, self.prerelease

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._rank() == other._rank()

    def __lt__(self, other: Semver) -> bool:
        return self._rank() < other._rank()

    def __hash__(self) -> int:
        return hash(self._rank())

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> Semver:
    """A strict semantic version."""
    if not text:
        raise AbsorbableError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise AbsorbableError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "Major")
    minor = _number(parts[1], "Minor")
    rest, _, build = parts[2].partition("+")
    if "+" in parts[2]:
        _check_build(build)
    patch, dash, prerelease = rest.partition("-")
    identifiers = tuple(map(_identifier, prerelease.split("."))) if dash else ()
    return Semver(major, minor, _number(patch, "Patch"), identifiers, text)


def normalize_version(text: str) -> str:
    """A version that is written loosely (v1.2, 01.2.3), as strict as it can be made."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if any(sign in parts[-1] for sign in "+-"):
            raise AbsorbableError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in _DIGITS else f"0{stripped}"


def _number(text: str, name: str) -> int:
    if not _DIGITS.issuperset(text):
        raise AbsorbableError(f'Invalid character(s) found in {name.lower()} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise AbsorbableError(f'{name} number must not contain leading zeroes "{text}"')
    return _parse(text)


def _parse(digits: str) -> int:
    if not digits:
        raise AbsorbableError('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > 20 or int(digits) > _MOST:
        raise AbsorbableError(f'strconv.ParseUint: parsing "{digits}": value out of range')
    return int(digits)


def _identifier(text: str) -> Identifier:
    if not text:
        raise AbsorbableError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text.startswith("0"):
            raise AbsorbableError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        return False, _parse(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise AbsorbableError(f'Invalid character(s) found in prerelease "{text}"')
    return True, text


def _check_build(build: str) -> None:
    for part in build.split("."):
        if not part:
            raise AbsorbableError("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(part):
            raise AbsorbableError(f'Invalid character(s) found in build meta data "{part}"')

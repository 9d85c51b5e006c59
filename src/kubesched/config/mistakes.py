"""The mistakes in a configuration, in the words of Kubernetes for each kind of mistake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubesched.api.errors import UserError
from kubesched.api.schema import Mistake


class ConfigError(UserError):
    """A configuration that cannot be used. A line per mistake: source, field path, what is wrong."""

    def __init__(self, mistakes: Iterable[Mistake], source: str = "<config>") -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(*(f"{source}: {mistake}" for mistake in self.mistakes))


class UnreadableConfigError(ConfigError):
    """Not a configuration at all: syntax, unknown fields, values of the wrong type."""


class InvalidConfigError(ConfigError):
    """A configuration whose values do not make sense."""


def invalid(path: str, value: Any, detail: str) -> Mistake:
    return Mistake(path, f"Invalid value: {_show(value)}: {detail}")


def out_of_range(path: str, value: int, least: int, most: int) -> Iterator[Mistake]:
    """A mistake, unless the number is within these bounds."""
    if not least <= value <= most:
        yield invalid(path, value, f"must be from {least} to {most}")


def required(path: str, detail: str) -> Mistake:
    return Mistake(path, f"Required value: {detail}")


def duplicate(path: str, value: Any) -> Mistake:
    return Mistake(path, f"Duplicate value: {_show(value)}")


def unsupported(path: str, value: Any, supported: Sequence[str]) -> Mistake:
    choices = ", ".join(_show(choice) for choice in supported)
    return Mistake(path, f"Unsupported value: {_show(value)}: supported values: {choices}")


def forbidden(path: str, detail: str) -> Mistake:
    return Mistake(path, f"Forbidden: {detail}")


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

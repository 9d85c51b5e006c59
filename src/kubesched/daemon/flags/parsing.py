"""Flags in pflag's manner: reading a command line (`--flag value`, `--flag=value`, repeated flags), and the usage."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kubesched.api.errors import UserError
from kubesched.daemon.flags.values import TYPES, FlagType


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, with its help."""

    name: str
    type: FlagType
    group: str
    help: str
    short: str = ""
    warning: str = ""
    """For a flag that is accepted and does nothing: why."""

    @property
    def field(self) -> str:
        """The name of its value among the options."""
        return self.name.replace("-", "_")

    @property
    def spelled(self) -> str:
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


class FlagError(UserError):
    """A command line that cannot be understood."""


class FlagSet:
    """All flags of a command."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self.flags = {flag.name: flag for flag in flags}
        self._short = {flag.short: flag for flag in self.flags.values() if flag.short}

    def parse(self, arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The values of the flags that were given, by flag name, and all that is no flag."""
        values: dict[str, Any] = {}
        positional: list[str] = []
        left = iter(arguments)
        for argument in left:
            if argument == "--":
                positional += left
            elif argument.startswith("--"):
                self._long(argument, left, values)
            elif argument.startswith("-") and argument != "-":
                self._shorts(argument, left, values)
            else:
                positional.append(argument)
        return values, positional

    def _long(self, argument: str, left: Iterator[str], values: dict[str, Any]) -> None:
        name, equals, text = argument[2:].partition("=")
        if not name or name.startswith("-"):
            raise FlagError(f"bad flag syntax: {argument}")
        flag = self.flags.get(name.replace("_", "-"))
        if flag is None:
            raise FlagError(f"unknown flag: --{name}{self._nearest(name)}")
        if not equals:
            text = self._value_of(flag, left, f"flag needs an argument: --{name}")
        _take(flag, text, values)

    def _shorts(self, argument: str, left: Iterator[str], values: dict[str, Any]) -> None:
        """`-v2`, `-v=2`, `-v 2`; several short flags may stand together as long as they need no value."""
        rest = argument[1:]
        while rest:
            letter, rest = rest[0], rest[1:]
            flag = self._short.get(letter)
            if flag is None:
                raise FlagError(f"unknown shorthand flag: {letter!r} in {argument}")
            if rest.startswith("="):
                text, rest = rest[1:], ""
            elif flag.type.without_value is not None:
                text = flag.type.without_value
            elif rest:
                text, rest = rest, ""
            else:
                text = self._value_of(flag, left, f"flag needs an argument: {letter!r} in {argument}")
            _take(flag, text, values)

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.flags, n=1, cutoff=0.75)
        return f"; did you mean --{near[0]}?" if near else ""

    def _value_of(self, flag: Flag, left: Iterator[str], complaint: str) -> str:
        if flag.type.without_value is not None:
            return flag.type.without_value
        text = next(left, None)
        if text is None:
            raise FlagError(complaint)
        return text


def _take(flag: Flag, text: str, values: dict[str, Any]) -> None:
    try:
        value = flag.type.parse(text)
    except ValueError as error:
        raise FlagError(f'invalid argument "{text}" for "{flag.spelled}" flag: {error}') from None
    if flag.type.add is not None and flag.name in values:
        value = flag.type.add(values[flag.name], value)
    values[flag.name] = value


_NARROW = 24


def sections(flags: Iterable[Flag], defaults: Mapping[str, Any], width: int = 0) -> str:
    """All groups, in the order in which they first appear; each flag with its default. Width 0 never wraps."""
    groups: dict[str, list[Flag]] = {}
    for flag in flags:
        groups.setdefault(flag.group, []).append(flag)
    return "".join(_section(group, members, defaults, width) for group, members in groups.items())


def _section(group: str, flags: list[Flag], defaults: Mapping[str, Any], width: int) -> str:
    ordered = sorted(flags, key=lambda flag: flag.name)
    names = [_spelled(flag) for flag in ordered]
    column = max(len(name) for name in names) + 3
    lines = []
    for flag, name in zip(ordered, names):
        text = flag.help + _default(flag, defaults.get(flag.name))
        indent = " " * column
        if width - column > _NARROW:
            text = "\n".join(textwrap.wrap(text, width - column, break_on_hyphens=False))
        lines.append(name.ljust(column) + text.replace("\n", f"\n{indent}"))
    return f"\n{group} flags:\n\n" + "\n".join(lines) + "\n"


def _spelled(flag: Flag) -> str:
    name = f"  -{flag.short}, --{flag.name}" if flag.short else f"      --{flag.name}"
    if flag.type.without_value is None:
        return f"{name} {flag.type.name}"
    return name if flag.type.name == "bool" else f"{name} {flag.type.name}[={flag.type.without_value}]"


def _default(flag: Flag, value: Any) -> str:
    """Defaults that mean nothing in particular are not worth a word."""
    shown = "" if value is None else flag.type.show(value)
    if shown in ("", "false", "0") or (shown == "[]" and flag.type.name == "strings"):
        return ""
    return f' (default "{shown}")' if flag.type.is_quoted else f" (default {shown})"


def _table() -> Iterator[Flag]:
    text = files(__package__).joinpath("flags.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        group, name, short, type_, help, warning = line.split("\t")
        yield Flag(name, TYPES[type_], group, help, short, warning)


FLAGS = FlagSet(_table())
"""Every flag of kube-scheduler with its group, and those that only kubesched has: the rows of flags.tsv."""

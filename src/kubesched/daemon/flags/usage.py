"""The text of `--help`: flags by group, as kube-scheduler prints them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from kubesched.daemon.flags.parsing import Flag

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

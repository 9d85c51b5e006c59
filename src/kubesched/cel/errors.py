"""What can go wrong with an expression, in the words users of kube-scheduler know."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

TOO_EXPENSIVE = "operation cancelled: actual cost limit exceeded"

_MOST_ISSUES = 100
_LONGEST_SNIPPET = 16384


class CelError(Exception):
    """A selector could not be compiled, or could not be evaluated for a device."""


class CompileError(CelError):
    """The expression is not valid for devices, whatever the device."""

    def __str__(self) -> str:
        return f"CEL compile error: {self.args[0]}"


class EvaluationError(CelError):
    """Evaluating the expression for this device failed."""

    def __str__(self) -> str:
        return f"CEL runtime error: {self.args[0]}"


class AbsorbableError(Exception):
    """An error as a value of CEL: operators like `||` may absorb it. Never leaves this package."""


class CostLimitError(Exception):
    """The cost limit was reached: no operator absorbs this error. Never leaves this package."""


def no_such_key(key: object) -> AbsorbableError:
    """Something was looked up that is not there."""
    return AbsorbableError(f"no such key: {key}")


def no_such_overload() -> AbsorbableError:
    """An operator or function was given values it is not made for."""
    return AbsorbableError("no such overload")


class Issue(NamedTuple):
    """One thing wrong with the text, at an offset into it; -1 is before everything."""

    offset: int
    message: str


class IssueError(Exception):
    """An issue at which parsing ends, or a call of a macro with arguments that it does not take."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(offset, message)


def describe_issues(text: str, issues: Iterable[Issue]) -> str:
    """All issues in order of their place, each with the line it is about and a mark under the place."""
    ordered = sorted(issues, key=lambda issue: issue.offset)
    shown = [_describe(text, issue) for issue in ordered[:_MOST_ISSUES]]
    if len(ordered) > _MOST_ISSUES:
        shown.append(f"{len(ordered) - _MOST_ISSUES} more errors were truncated")
    return "\n".join(shown)


def _describe(text: str, issue: Issue) -> str:
    starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]
    line = max(bisect_right(starts, issue.offset), 1)
    column = issue.offset - starts[line - 1]
    described = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
    snippet = text[starts[line - 1] :].partition("\n")[0].replace("\t", " ")
    if not text or len(snippet) > _LONGEST_SNIPPET:
        return described
    dots = "".join("." if char.isascii() else "\uff0e" for char in snippet[:column])
    marked = snippet[column : column + 1]
    return f"{described}\n | {snippet}\n | {dots}{'^' if marked.isascii() else chr(0xFF3E)}"

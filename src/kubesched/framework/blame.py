"""Who broke: the plugin that an exception came from, so that its author knows where to look."""

from __future__ import annotations

from collections.abc import Iterable
from traceback import extract_tb, walk_tb
from types import FrameType

from kubesched.framework.plugin import Plugin


def told(problem: BaseException) -> str:
    """The exception in one line, with the plugin that was at work, if one was."""
    plugin = plugin_at_work(problem)
    return line_of(problem) if plugin is None else f'plugin "{plugin.name}" broke: {line_of(problem)}'


def line_of(problem: BaseException) -> str:
    """`KeyError: 'zone'`; the name alone if there is nothing else to say."""
    name = type(problem).__name__
    return f"{name}: {problem}" if str(problem) else name


def placed(problem: BaseException, *, outside: Iterable[str] = ()) -> str:
    """As `line_of`, after `file:line: ` of where it was raised, unless that is here or in one of these packages."""
    inside = extract_tb(problem.__traceback__)[1:]
    own = [frame for frame in inside if not any(package in frame.filename for package in outside)]
    return f"{own[-1].filename}:{own[-1].lineno}: {line_of(problem)}" if own else line_of(problem)


def plugin_at_work(problem: BaseException) -> Plugin | None:
    """The plugin that was being asked, or whose answer was looked at, when it happened."""
    for frame, _ in reversed(list(walk_tb(problem.__traceback__))):
        plugin = _plugin_of(frame)
        if plugin is not None:
            return plugin
    return None


def _plugin_of(frame: FrameType) -> Plugin | None:
    """Whose method this is, or about whom this part of the framework was busy."""
    for name in ("self", "plugin"):
        found = frame.f_locals.get(name)
        if isinstance(found, Plugin):
            return found
    return None

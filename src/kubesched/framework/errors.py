"""Exceptions of plugins: which plugin raised one, and what it says in a line, so that its author finds it."""

from __future__ import annotations

from collections.abc import Iterable
from traceback import extract_tb


class PluginError(Exception):
    """A plugin raised an exception, or gave an answer that makes no sense. `cause` is what was raised."""

    def __init__(self, plugin: str, cause: Exception) -> None:
        super().__init__(f'plugin "{plugin}" broke: {describe(cause)}')
        self.plugin = plugin
        self.cause = cause


class NotDecidedError(Exception):
    """The attempt cannot be decided yet, or not in time: no mistake of the plugin that raised it."""


class Blame:
    """Turns what is raised inside into a PluginError of this plugin, unless it is one already."""

    __slots__ = ("_plugin",)

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, place: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, PluginError | NotDecidedError):
            raise PluginError(self._plugin, error) from error


def describe(error: BaseException) -> str:
    """`KeyError: 'zone'`; the name alone if there is nothing else to say; of a plugin, which plugin broke."""
    if isinstance(error, PluginError):
        return str(error)
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


def describe_with_place(error: BaseException, *, outside: Iterable[str] = ()) -> str:
    """As `describe`, after `file:line: ` of where it was raised, unless that is here or in one of these packages."""
    frames = extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if not any(package in frame.filename for package in outside)]
    return f"{own[-1].filename}:{own[-1].lineno}: {describe(error)}" if own else describe(error)

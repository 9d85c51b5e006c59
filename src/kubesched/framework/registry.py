"""Plugins by name: those that come with kubesched, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from kubesched.framework.plugin import Plugin

ENTRY_POINT_GROUP = "kubesched.plugins"


class DuplicatePluginError(ValueError):
    """Two plugins want the same name."""


class NotAPluginError(TypeError):
    """An entry point does not lead to a plugin class."""


class Registry(Mapping[str, type[Plugin]]):
    """Plugin classes by name; each name once."""

    def __init__(self, plugins: Iterable[type[Plugin]] = ()) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: type[Plugin]) -> None:
        if not plugin.name:
            raise NotAPluginError(f"{plugin.__module__}.{plugin.__qualname__} has no name")
        if plugin.name in self._plugins:
            raise DuplicatePluginError(f"there is a plugin named {plugin.name!r} already")
        self._plugins[plugin.name] = plugin

    def register_installed(self) -> None:
        """Add the plugins of all installed packages that offer some."""
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            self.register(_load(entry))

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def _load(entry: EntryPoint) -> type[Plugin]:
    plugin = entry.load()
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        raise NotAPluginError(f"entry point {entry.name!r} ({entry.value}) is not a kubesched plugin class")
    return plugin

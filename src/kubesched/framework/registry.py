"""Plugins by name: those that come with kubesched, and those that other packages offer as entry points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from kubesched.api.errors import UserError, located
from kubesched.framework.errors import describe_with_place
from kubesched.framework.plugin import EXTENSION_POINTS, Plugin

ENTRY_POINT_GROUP = "kubesched.plugins"

_NEEDS_ONE_OF = {
    "queue_sort": ("sort_key",),
    "filter": ("filter", "filter_node"),
    "pre_score": (),
    "score": ("score", "score_node"),
}
"""The methods of a point, unless it is one of the same name. A plugin without any would break at the first pod."""


class DuplicatePluginError(UserError):
    """Two plugins want the same name."""


class NotAPluginError(UserError):
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
            plugin = _load(entry)
            with located(_describe_entry_point(entry)):
                self.register(plugin)

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def _load(entry: EntryPoint) -> type[Plugin]:
    subject = _describe_entry_point(entry)
    try:
        plugin = entry.load()
    except Exception as error:  # whatever a module does when it is imported
        raise NotAPluginError(
            f"{subject} cannot be loaded: {describe_with_place(error, outside=('importlib',))}"
        ) from error
    if not isinstance(plugin, type) or not issubclass(plugin, Plugin):
        raise NotAPluginError(f"{subject} is not a kubesched plugin class")
    for point_name, point in EXTENSION_POINTS.items():
        methods = _NEEDS_ONE_OF.get(point_name, (point_name,)) if issubclass(plugin, point) else ()
        if methods and all(getattr(plugin, name) is getattr(point, name) for name in methods):
            raise NotAPluginError(f"{subject} is a {point.__name__} without {' or '.join(methods)}")
    return plugin


def _describe_entry_point(entry: EntryPoint) -> str:
    return f"entry point {entry.name!r} ({entry.value})"

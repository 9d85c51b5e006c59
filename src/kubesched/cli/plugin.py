"""`kubesched plugin`: which plugins there are, and a package to begin one's own with."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path

import click
from jinja2 import Environment, StrictUndefined

from kubesched.api.errors import UserError
from kubesched.ask.answers import InstalledPlugin, PluginList, answer
from kubesched.cli.cluster_options import TEXT, output_option
from kubesched.cli.grid import Grid
from kubesched.cli.main import SuggestingGroup
from kubesched.cli.printing import console, print_plain
from kubesched.framework.plugin import EXTENSION_POINTS, Plugin
from kubesched.framework.registry import ENTRY_POINT_GROUP
from kubesched.plugins.registry import all_plugins, in_tree

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "scheduler.yaml": "scheduler.yaml",
    "plugin.py": "src/{package}/plugin.py",
    "test_plugin.py": "tests/test_{package}.py",
}
"""Templates, and where each is written."""


@click.group(cls=SuggestingGroup)
def plugin() -> None:
    """List the plugins that are installed, and begin a new one."""


@plugin.command("list")
@output_option()
def list_(output: str) -> None:
    """List the plugins that a configuration may name, with where they come from and the extension points they have."""
    origins = {entry.load(): f"{entry.dist.name} {entry.dist.version}" for entry in _entries() if entry.dist}
    own = in_tree()
    plugins = tuple(
        InstalledPlugin(name, "kubesched" if name in own else origins.get(type_, type_.__module__), points_of(type_))
        for name, type_ in sorted(all_plugins().items())
    )
    if output != TEXT:
        print_plain(answer(PluginList(plugins)), output)
        return
    grid = Grid(("Plugin", "From", "Extension points"))
    for plugin in plugins:
        grid.add(plugin.name, plugin.origin, ", ".join(plugin.points))
    grid.print(console())


def points_of(plugin: type[Plugin]) -> tuple[str, ...]:
    """The extension points of a plugin, as configurations name them."""
    return tuple(_camel(point) for point, base in EXTENSION_POINTS.items() if issubclass(plugin, base))


def _camel(point: str) -> str:
    first, *others = point.split("_")
    return first + "".join(word.capitalize() for word in others)


def _entries() -> list[EntryPoint]:
    return list(entry_points(group=ENTRY_POINT_GROUP))


@plugin.command()
@click.argument("name")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Directory to write to; ./NAME if not set.")
def new(name: str, folder: Path | None) -> None:
    """Write a package with a plugin called NAME, its tests and a configuration that enables it."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name}: a plugin's name is words without blanks, each with a capital, such as QuietNodes")
    if name in all_plugins():
        raise UserError(f"{name}: there is a plugin of that name already")
    distribution = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    package = distribution.replace("-", "_")
    target = folder or Path(distribution)
    if target.exists() and any(target.iterdir()):
        raise UserError(f"{target}: not empty; nothing was written")
    names = {"plugin": name, "distribution": distribution, "package": package}
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    templates = files("kubesched.cli") / "new_plugin"
    for template, place in _FILES.items():
        file = target / place.format(package=package)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(environment.from_string((templates / f"{template}.j2").read_text()).render(names))
    (target / "src" / package / "__init__.py").write_text(f'"""{name}, a plugin for kubesched."""\n')
    click.echo(f"{target}: a package with {name}, its tests and a configuration. Try next:")
    for hint in (f"cd {target}", "pip install -e .", "pytest", "kubesched config check scheduler.yaml"):
        click.echo(f"  {hint}")

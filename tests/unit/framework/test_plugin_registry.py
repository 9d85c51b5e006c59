from __future__ import annotations

from pathlib import Path

import pytest
from tests.installed_plugin import install_plugin

from kubesched.framework.plugin import FilterPlugin, Plugin
from kubesched.framework.registry import DuplicatePluginError, NotAPluginError, Registry
from kubesched.plugins.registry import in_tree

OFFERED = """
from kubesched.framework.plugin import FilterPlugin

class Offered(FilterPlugin):
    name = "Offered"

def not_a_class():
    pass
"""


class Mine(FilterPlugin):
    name = "Mine"


def test_plugins_are_found_by_name() -> None:
    registry = Registry([Mine])
    assert registry["Mine"] is Mine
    assert list(registry) == ["Mine"]


def test_a_name_belongs_to_one_plugin() -> None:
    with pytest.raises(DuplicatePluginError, match="a plugin named 'Mine' already"):
        Registry([Mine, Mine])


def test_a_plugin_must_have_a_name() -> None:
    class Nameless(Plugin):
        pass

    with pytest.raises(NotAPluginError, match="Nameless has no name"):
        Registry([Nameless])


def test_plugins_of_installed_packages_are_found_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, monkeypatch, OFFERED, name="Offered")
    registry = in_tree()
    registry.register_installed()
    assert issubclass(registry["Offered"], FilterPlugin)


def test_an_entry_point_that_leads_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_plugin(tmp_path, monkeypatch, OFFERED, name="not_a_class")
    with pytest.raises(
        NotAPluginError, match=r"'offered' \(offering_not_a_class:not_a_class\) is not a kubesched plugin class"
    ):
        Registry().register_installed()

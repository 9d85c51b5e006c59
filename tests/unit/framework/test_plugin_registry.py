from __future__ import annotations

import sys
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

    def filter_node(self, cycle, node):
        return None

class Misspelt(FilterPlugin):
    name = "Misspelt"

    def filter_nodes(self, cycle, node):
        return None

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


def test_a_plugin_without_the_method_of_its_extension_point_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, monkeypatch, OFFERED, name="Misspelt")
    with pytest.raises(
        NotAPluginError, match=r"offering_misspelt:Misspelt\) is a FilterPlugin without filter or filter_node"
    ):
        Registry().register_installed()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (OFFERED, "AttributeError: module 'offering_lost' has no attribute 'Lost'"),
        ("\nimport nowhere", "offering_lost.py:2: ModuleNotFoundError: No module named 'nowhere'"),
        ("\n\nx = {}['a']", "offering_lost.py:3: KeyError: 'a'"),
        ("class Lost(FilterPlugin)", r"SyntaxError: expected ':' \(offering_lost.py, line 1\)"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_is_told_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, words: str
) -> None:
    monkeypatch.delitem(sys.modules, "offering_lost", raising=False)
    install_plugin(tmp_path, monkeypatch, module, name="Lost")
    with pytest.raises(
        NotAPluginError, match=r"entry point 'offered' \(offering_lost:Lost\) cannot be loaded: .*" + words
    ):
        Registry().register_installed()

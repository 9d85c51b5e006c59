"""The pages that are made from the code, and the navigation of the site: every page has its place."""

from __future__ import annotations

from typing import Any

import yaml
from tests.unit.docs.pages import ROOT
from tools import parity_page

DOCS = ROOT / "docs"


def test_the_parity_page_is_that_of_the_recordings() -> None:
    text = parity_page.PAGE.read_text()
    assert parity_page.page(parity_page.recorded_on(text)) == text, "run python tools/parity_page.py"


def pages_in(navigation: Any) -> set[str]:
    match navigation:
        case str():
            return {navigation}
        case dict():
            return set().union(*map(pages_in, navigation.values()))
        case _:
            return set().union(*map(pages_in, navigation))


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    records = {page for page in pages if page.startswith("decisions/") and page != "decisions/README.md"}
    assert pages_in(navigation) == pages - records


def test_the_first_page_leads_to_every_recipe() -> None:
    text = (DOCS / "index.md").read_text()
    for recipe in (DOCS / "recipes").glob("*.md"):
        assert f"(recipes/{recipe.name})" in text

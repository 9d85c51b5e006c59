"""What is in a release: every locked package is in both documents, with who needs it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tools.locked import RUN, read
from tools.sbom import cyclonedx, spdx, write

MADE = datetime(2030, 1, 2, tzinfo=UTC)
LOCKED = read()


def test_every_line_of_the_list_is_read() -> None:
    text = RUN.read_text()
    assert len(LOCKED) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)) > 15
    assert sum(len(package.hashes) for package in LOCKED) == text.count("--hash=sha256:")
    assert all(package.needed_by and package.hashes for package in LOCKED)


def test_a_line_that_is_not_understood_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("click @ https://example.com/click.whl\n")
    with pytest.raises(ValueError, match=r"run\.txt:1: not a line of a locked list"):
        read(tmp_path / "run.txt")


def test_both_documents_have_every_package() -> None:
    purls = {package.purl for package in LOCKED}
    in_spdx = {package["externalRefs"][0]["referenceLocator"] for package in spdx(LOCKED, MADE)["packages"][1:]}
    in_cyclonedx = {component["purl"] for component in cyclonedx(LOCKED, MADE)["components"]}
    assert in_spdx == in_cyclonedx == purls


def test_documents_say_who_needs_whom() -> None:
    yarl, aiohttp = (next(each for each in LOCKED if each.name == name) for name in ("yarl", "aiohttp"))
    needs = {each["ref"]: each["dependsOn"] for each in cyclonedx(LOCKED, MADE)["dependencies"]}
    [root] = [ref for ref in needs if ref.startswith("pkg:pypi/kubesched@")]
    assert aiohttp.purl in needs[root]
    assert yarl.purl in needs[aiohttp.purl]
    ids = {package["SPDXID"] for package in spdx(LOCKED, MADE)["packages"]} | {"SPDXRef-DOCUMENT"}
    relations = spdx(LOCKED, MADE)["relationships"]
    assert {each[end] for each in relations for end in ("spdxElementId", "relatedSpdxElement")} == ids
    depends = {(each["spdxElementId"], each["relatedSpdxElement"]) for each in relations}
    assert (f"SPDXRef-aiohttp-{aiohttp.version}", f"SPDXRef-yarl-{yarl.version}") in depends


def test_identifiers_are_what_spdx_allows() -> None:
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]) for package in spdx(LOCKED, MADE)["packages"])


def test_the_same_list_and_date_give_the_same_bytes(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, 1_700_000_000)
        texts.append({file.name: file.read_text() for file in (tmp_path / name).iterdir()})
    assert texts[0] == texts[1]
    assert set(texts[0]) == {"kubesched.spdx.json", "kubesched.cdx.json"}
    assert all("2023-11-14T22:13:20Z" in text for text in texts[0].values())

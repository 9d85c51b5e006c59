"""Every place that has a version has the same one, and a release raises all of them."""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

from tools.release import PLACES, ROOT, write

from kubesched import __version__

NUMBERED = [place for place in PLACES if place != "CHANGELOG.md"]


def versions(root: Path) -> dict[str, set[str]]:
    return {place: set(re.findall(PLACES[place], (root / place).read_text(), re.MULTILINE)) for place in NUMBERED}


def test_every_place_has_the_version_of_the_package() -> None:
    assert versions(ROOT) == {place: {__version__} for place in NUMBERED}


def test_a_release_raises_all_of_them(tmp_path: Path) -> None:
    for place in PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, tmp_path / place)
    write("9.8.7", tmp_path, date(2030, 1, 2))
    assert versions(tmp_path) == {place: {"9.8.7"} for place in NUMBERED}
    assert "## Unreleased\n\n## 9.8.7 - 2030-01-02\n" in (tmp_path / "CHANGELOG.md").read_text()

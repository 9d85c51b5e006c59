"""The glossary names classes and folders that exist, each word once."""

from __future__ import annotations

import re

from tests.unit.docs.pages import ROOT

SOURCE = ROOT / "src" / "kubesched"
SANDBOX = ROOT / "sandbox" / "src" / "kubesched_sandbox"
ROWS = re.findall(
    r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
)


def test_every_word_is_there_once() -> None:
    words = [word for word, _ in ROWS if word != "word"]
    assert len(words) > 40
    assert len(words) == len(set(words))


def test_every_class_and_folder_named_exists() -> None:
    classes = {
        name
        for source in (SOURCE, SANDBOX)
        for file in source.rglob("*.py")
        for name in re.findall(r"^class (\w+)", file.read_text(), re.M)
    }
    for word, place in ROWS:
        for name in re.findall(r"`([^`]+)`", place):
            if "/" in name:
                assert (ROOT / name).exists() or (SOURCE / name).exists(), word
            else:
                assert name.removeprefix("kubesched.plugin.").partition(".")[0] in classes, word

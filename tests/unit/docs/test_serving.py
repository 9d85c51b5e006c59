"""The page on questions of programs: its paths, verbs and fields are those there are."""

from __future__ import annotations

import re

from tests.unit.docs.pages import ROOT

from kubesched.ask.edits import TrialEdit
from kubesched.ask.what_if.what_if import WhatIfQuestion
from kubesched.serve.questions import QUESTIONS

PAGE = ROOT / "docs" / "serving.md"


def test_every_question_and_every_verb_is_on_the_page() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"`POST (\S+)`", text)) == set(QUESTIONS)
    verbs = {kind.__struct_config__.tag for kind in TrialEdit.__args__}
    assert _first_column(text, "### Changes") == verbs
    assert _first_column(text, "### What if") == set(WhatIfQuestion.__struct_encode_fields__)


def _first_column(text: str, section: str) -> set[str]:
    """The names in the first column of the table of a section."""
    rows = [line for line in text.partition(section)[2].partition("\n### ")[0].splitlines() if "|" in line]
    return {name for row in rows[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}

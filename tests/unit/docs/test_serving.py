"""The page on questions of programs: its client asks a real service, its options and paths are those there are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.docs.pages import ROOT, blocks

from kubesched.questions.edits import TrialEdit
from kubesched.questions.what_if.request import WhatIfQuestion
from kubesched.serve.openapi import QUESTIONS

PAGE = ROOT / "docs" / "serving.md"
SHOP = ROOT / "examples" / "shop"


@contextmanager
def service(*arguments: str) -> Iterator[str]:
    """The command as a process; its address. It must end well."""
    command = [sys.executable, "-m", "kubesched", "serve", "--port", "0", *arguments]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Listening on "), said
            yield said.split()[2]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


@pytest.mark.slow
def test_the_client_asks_a_service(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    [code] = blocks(PAGE, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 22
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    with service("-f", str(SHOP), "--token-file", str(token)) as url:
        client = names["Kubesched"](url, "secret")
        pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
        assert client.ask("fit", pods=[pod])["placed"][0]["node"]
        assert client.ask("capacity", pod=pod)["fit"] > 1
        assert names["can_be_removed"](client, "web-c1", [pod]) is True
        with pytest.raises(ValueError, match="there is no node 'nowhere'"):
            names["can_be_removed"](client, "nowhere", [pod])
        with pytest.raises(ValueError, match="bearer token"):
            names["Kubesched"](url, "guess").ask("fit", pods=[pod])


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

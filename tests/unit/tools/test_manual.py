"""The man pages and completions that packages bring are those of the commands as they are."""

from __future__ import annotations

import re
from pathlib import Path

from tools.manual import ROOT, files

from kubesched.cli.main import COMMANDS
from kubesched.daemon.options import FLAGS

MADE = files()


def test_pages_and_completions_are_current() -> None:
    shares = (ROOT / "share", ROOT / "sandbox" / "share")
    kept = {
        str(file.relative_to(ROOT)): file.read_text() for share in shares for file in share.rglob("*") if file.is_file()
    }
    changed = sorted(place for place in MADE.keys() | kept.keys() if MADE.get(place) != kept.get(place))
    assert not changed, "run python tools/manual.py"


def test_every_command_has_a_page() -> None:
    pages = {Path(place).stem for place in MADE if place.endswith(".1")}
    assert {f"kubesched-{name}" for name in COMMANDS} < pages
    assert {"kubesched", "kubectl-sched", "kubesched-plugin-new"} < pages


def test_what_the_sandbox_brings_is_in_its_own_distribution() -> None:
    assert [place for place in MADE if "sandbox" in place] == ["sandbox/share/man/man1/kubesched-sandbox.1"]


def test_the_page_of_run_has_every_flag() -> None:
    page = MADE["share/man/man1/kubesched-run.1"].replace("\\-", "-")
    shown = {
        flag for line in re.findall(r"^\.B (-.*)$", page, re.MULTILINE) for flag in re.findall(r"--([\w.-]+)", line)
    }
    assert set(FLAGS) <= shown

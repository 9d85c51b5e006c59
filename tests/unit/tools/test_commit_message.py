"""The hook that checks commit messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.commit_message import main, mistakes

WHY = "\n\nA pod that waits for nothing need not be tried.\n"


@pytest.mark.parametrize(
    "message",
    [
        f"queue: keep gated pods out of backoff{WHY}",
        f"sandbox/http: embed the certificate{WHY}",
        f"kube: process watches in order{WHY}",
        f"framework: need one answer per class{WHY}",
        "docs: say what a glossary is",
        "tests: move what sleeps to integration\n# a comment of git",
        "Merge branch 'http'",
        'Revert "queue: keep gated pods out of backoff"',
        "fixup! queue: keep gated pods out of backoff",
        "Release 0.2.0",
    ],
)
def test_good_messages_pass(message: str) -> None:
    assert list(mistakes(message)) == []


@pytest.mark.parametrize(
    ("message", "mistake"),
    [
        (f"Gated pods stay out of backoff{WHY}", "component: imperative"),
        (f"Queue: keep gated pods out{WHY}", "component: imperative"),
        (f"queue:keep gated pods out{WHY}", "component: imperative"),
        ("", "component: imperative"),
        (f"queue: {'keep ' * 14}{WHY}", "at most 72"),
        (f"queue: keep gated pods out.{WHY}", "full stop"),
        (f"queue: keeps gated pods out{WHY}", "imperative after"),
        (f"queue: added a class{WHY}", "imperative after"),
        (f"queue: fixes gated pods{WHY}", "imperative after"),
        (f"queue: adding gated pods{WHY}", "imperative after"),
        ("queue: keep gated pods out", "a body with the why"),
        ("queue: keep gated pods out\n\n# only a comment", "a body with the why"),
        ("queue: keep gated pods out\n\nSigned-off-by: A <a@example.com>", "a body with the why"),
        ("queue: keep gated pods out\nwithout an empty line", "an empty line"),
    ],
)
def test_bad_messages_are_refused_with_what_was_expected(message: str, mistake: str) -> None:
    assert any(mistake in found for found in mistakes(message)), list(mistakes(message))


def test_subject_may_have_72_characters() -> None:
    subject = "queue: " + "k" * 65
    assert list(mistakes(subject + WHY)) == []
    assert list(mistakes(f"{subject}k{WHY}")) != []


def test_hook_prints_every_mistake_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("queue: keeps gated pods out.\n")
    assert main(str(file)) == 1
    assert len(capsys.readouterr().err.splitlines()) == 3
    file.write_text(f"queue: keep gated pods out{WHY}")
    assert main(str(file)) == 0
    assert capsys.readouterr().err == ""

"""The `commit-msg` hook: a subject `component: imperative` of at most 72 characters, and the why in the body."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST_SUBJECT = 72
NEED_NO_BODY = ("docs", "tests")
"""Components whose changes need no reason."""

_BY_GIT = re.compile(r'(Merge |Revert "|fixup! |squash! |Release \d)')
"""Subjects that git writes by itself, and those of releases."""
_SUBJECT = re.compile(r"(?P<component>[a-z][a-z0-9_./-]*(, [a-z][a-z0-9_./-]*)*): (?P<verb>[A-Za-z][a-z'-]*)\b.*")
_NOT_IMPERATIVE = re.compile(r".*([^aius]s|[^e]ed|ing)")
_IMPERATIVE = frozenset({"bring", "embed", "ping", "ring", "shed", "spring", "string"})
"""Imperatives that end as if they were none."""
_TRAILER = re.compile(r"[A-Z][A-Za-z]*(-[A-Za-z]+)+: ")
_SCISSORS = "# ------------------------ >8 ------------------------"


def mistakes(message: str) -> Iterator[str]:
    """What is wrong with a message, as git hands it to its hook: comments are left out."""
    lines = [line.rstrip() for line in message.partition(_SCISSORS)[0].splitlines() if not line.startswith("#")]
    subject, rest = (lines or [""])[0], lines[1:]
    if _BY_GIT.match(subject):
        return
    if len(subject) > LONGEST_SUBJECT:
        yield f"the subject has {len(subject)} characters; at most {LONGEST_SUBJECT} are allowed"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    found = _SUBJECT.fullmatch(subject)
    if found is None:
        yield "expected a subject `component: imperative`, such as `queue: keep gated pods out of backoff`"
        return
    verb = found["verb"]
    if verb.lower() not in _IMPERATIVE and _NOT_IMPERATIVE.fullmatch(verb):
        yield f"expected an imperative after {found['component']!r}, such as `add`; got {verb!r}"
    if rest and rest[0]:
        yield "expected an empty line after the subject"
    has_body = any(line and not _TRAILER.match(line) for line in rest)
    if not has_body and found["component"] not in NEED_NO_BODY:
        yield f"expected a body with the why; only {' and '.join(NEED_NO_BODY)} need none"


def main(file: str) -> int:
    """0 if git may commit with the message in this file."""
    found = list(mistakes(Path(file).read_text(encoding="utf-8")))
    for mistake in found:
        sys.stderr.write(f"commit message: {mistake}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

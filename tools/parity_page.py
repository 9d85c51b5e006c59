"""Writes docs/parity.md from the recordings of kube-scheduler: `python tools/parity_page.py`."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

from kubesched.api.release import V1_36

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "parity.md"
GOLDEN = ROOT / "tests" / "parity" / "golden"
TITLES = {
    "decisions": "Decisions: every verdict, message, score and choice",
    "queue": "Queues: what is tried when, and what wakes it",
    "config": "Configurations: defaults, conversions, refusals",
}
_DATE = re.compile(r"(?<=recorded on )[\d-]+")


def counts(of: str) -> dict[str, int]:
    """How many cases each family of recordings has."""
    files = sorted((GOLDEN / of).glob("*.jsonl.gz"))
    return {file.name.removesuffix(".jsonl.gz"): len(gzip.decompress(file.read_bytes()).splitlines()) for file in files}


def page(recorded: str) -> str:
    """The whole page; `recorded` is the day of the recordings."""
    found = {of: counts(of) for of in TITLES}
    total = sum(sum(families.values()) for families in found.values())
    tag = f"v{V1_36.version}"
    lines = [
        "# Parity",
        "",
        f"{total:,} recordings of kube-scheduler {tag}, recorded on {recorded}, are replayed: each has to come out",
        "the same, to the word and to the score. None is left out. What is known to differ, beside them, is in",
        "[differences.md](differences.md).",
        "",
        "```",
        "pytest tests/parity                                             # replay all of them",
        "make record KUBERNETES=~/kubernetes/source OUT=/tmp/recorded    # have kube-scheduler make them anew",
        "```",
        "",
        "This page is written by `tools/parity_page.py`.",
    ]
    for of, title in TITLES.items():
        lines += ["", f"## {title}", "", "| family | recordings |", "|---|---|"]
        lines += [f"| {family} | {count:,} |" for family, count in found[of].items()]
        lines += [f"| all | {sum(found[of].values()):,} |"]
    return "\n".join(lines) + "\n"


def recorded_on(text: str) -> str:
    """The day that a page names."""
    found = _DATE.search(text)
    return found[0] if found else ""


if __name__ == "__main__":
    log = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs", "--", str(GOLDEN)]
    PAGE.write_text(page(subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()))

"""Writes docs/parity.md from the recordings of kube-scheduler: `python tools/parity_page.py`."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

from kubesched.api.release import RELEASES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "parity.md"
GOLDEN = ROOT / "tests" / "parity" / "golden"
FOLDERS = {
    release.version: GOLDEN / release.name if (GOLDEN / release.name).is_dir() else GOLDEN
    for release in RELEASES.values()
}
"""By the version of kube-scheduler that was recorded; the first has no folder of its own."""
TITLES = {
    "decisions": "Decisions: every verdict, message, score and choice",
    "queue": "Queues: what is tried when, and what wakes it",
    "config": "Configurations: defaults, conversions, refusals",
}
_DATES = re.compile(r"^\| v(\S+) \| [\d,]+ \| ([\d-]+) \|$", re.MULTILINE)


def counts(of: str, version: str) -> dict[str, int]:
    """How many cases each family of recordings has."""
    files = sorted((FOLDERS[version] / of).glob("*.jsonl.gz"))
    return {file.name.removesuffix(".jsonl.gz"): len(gzip.decompress(file.read_bytes()).splitlines()) for file in files}


def page(recorded: dict[str, str]) -> str:
    """The whole page; `recorded` is the day of the recordings, by version."""
    found = {of: {version: counts(of, version) for version in FOLDERS} for of in TITLES}
    lines = [
        "# Parity",
        "",
        "What kube-scheduler did was recorded, and is replayed: each recording has to come out the same, to the",
        "word and to the score. None is left out; of later releases a sample of the cases is kept, and what is new.",
        "What is known to differ, beside them, is in [differences.md](differences.md).",
        "",
        "| kube-scheduler | recordings | recorded on |",
        "|---|---|---|",
    ]
    for version in FOLDERS:
        total = sum(sum(by_version[version].values()) for by_version in found.values())
        lines.append(f"| v{version} | {total:,} | {recorded.get(version, '')} |")
    lines += [
        "",
        "```",
        "pytest tests/parity                                             # replay all of them",
        "make record KUBERNETES=~/kubernetes/source OUT=/tmp/recorded    # have kube-scheduler make them anew",
        "```",
        "",
        "This page is written by `tools/parity_page.py`.",
    ]
    for of, title in TITLES.items():
        lines += ["", f"## {title}", "", f"| family | {' | '.join(f'v{version}' for version in FOLDERS)} |"]
        lines += ["|---|" + "---|" * len(FOLDERS)]
        families = sorted({family for by_family in found[of].values() for family in by_family})
        rows = {family: [found[of][version].get(family, 0) for version in FOLDERS] for family in families}
        rows["all"] = [sum(found[of][version].values()) for version in FOLDERS]
        lines += [f"| {family} | {' | '.join(f'{count:,}' for count in row)} |" for family, row in rows.items()]
    return "\n".join(lines) + "\n"


def recorded_on(text: str) -> dict[str, str]:
    """The days that a page names, by version."""
    return dict(_DATES.findall(text))


def _last_change(folder: Path) -> str:
    others = [f":(exclude){other}" for other in FOLDERS.values() if other != folder and other.is_relative_to(folder)]
    log = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs", "--", str(folder), *others]
    return subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    PAGE.write_text(page({version: _last_change(folder) for version, folder in FOLDERS.items()}))

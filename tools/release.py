"""Write the next version to every place that has one.

    python tools/release.py 0.2.0

The version itself is kubesched.__version__; the others are files that Helm and kubectl read as they are. What is under
"Unreleased" in CHANGELOG.md becomes the new version's. CONTRIBUTING.md has the steps before and after.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "src/kubesched/__init__.py": r'(?<=__version__ = ")[^"]+',
    "sandbox/pyproject.toml": r'(?:(?<=^version = ")|(?<="kubesched==))[^"]+',
    "deploy/helm/kubesched/Chart.yaml": r"(?:(?<=^version: )|(?<=^appVersion: ))\S+",
    "deploy/manifests/replace-kube-scheduler.yaml": r"(?<=image: kubesched:)\S+",
    "deploy/manifests/beside-kube-scheduler.yaml": r"(?<=image: kubesched:)\S+",
    "deploy/manifests/shadow.yaml": r"(?<=image: kubesched:)\S+",
    "examples/ci/argocd-presync.yaml": r"(?<=image: kubesched:)\S+",
    "deploy/README.md": r"(?<=registry.example.com/kubesched:)\d+\.\d+\.\d+",
    "CHANGELOG.md": r"(?<=^## Unreleased\n)",
}
"""Files, and what is replaced in each."""


def write(version: str, root: Path, today: date) -> None:
    for place, pattern in PLACES.items():
        file = root / place
        new = f"\n## {version} - {today}\n" if place == "CHANGELOG.md" else version
        text, count = re.subn(pattern, new, file.read_text(), flags=re.MULTILINE)
        if not count:
            sys.exit(f"{place}: there is no version where one was expected")
        file.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit("usage: python tools/release.py MAJOR.MINOR.PATCH")
    write(sys.argv[1], ROOT, datetime.now(UTC).date())

"""Files of a Kubernetes release, read from a clone of kubernetes/kubernetes without checking it out."""

from __future__ import annotations

import subprocess
import sys


class Release:
    """A tag of a clone."""

    def __init__(self, git_dir: str, tag: str) -> None:
        self.tag = tag
        self._git_dir = git_dir

    def read(self, path: str) -> str:
        command = ["git", f"--git-dir={self._git_dir}", "show", f"{self.tag}:{path}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @property
    def minor(self) -> tuple[int, ...]:
        """`(1, 36)` of v1.36.4."""
        return tuple(int(part) for part in self.tag.removeprefix("v").split(".")[:2])


def release_on_command_line() -> Release:
    if len(sys.argv) != 3:
        sys.exit("expected the .git directory of a clone of kubernetes/kubernetes, and a tag such as v1.36.4")
    return Release(*sys.argv[1:])

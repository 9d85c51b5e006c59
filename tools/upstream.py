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
        """The text of a file."""
        return self._git("show", f"{self.tag}:{path}")

    def names(self, directory: str) -> list[str]:
        """What is in a directory."""
        return self._git("ls-tree", "--name-only", f"{self.tag}:{directory}").splitlines()

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self._git_dir}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{self._git_dir}: {done.stderr.strip()}")
        return done.stdout

    @property
    def minor(self) -> tuple[int, ...]:
        """`(1, 36)` of v1.36.4."""
        return tuple(int(part) for part in self.tag.removeprefix("v").split(".")[:2])


def release_on_command_line() -> Release:
    if len(sys.argv) != 3:
        sys.exit("expected the .git directory of a clone of kubernetes/kubernetes, and a tag such as v1.36.4")
    return Release(*sys.argv[1:])

"""Distributions built from a copy of the repository, and environments with them and what they need to run, offline.

An environment is made as a user's is, by pip from the built file; what the file requires is linked from where the
tests run, by its own list of files, so that nothing else that is installed there can be imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = {
    "kubesched": ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore", "share", "src"),
    "sandbox": ("pyproject.toml", "README.md", "LICENSE", "share", "src"),
}
"""Each with what of the repository it is made of."""


def copy_sources(to: Path) -> Path:
    """Both distributions as a checkout has them, without what was built or compiled there."""
    for name, parts in DISTRIBUTIONS.items():
        source, target = (ROOT, to) if name == "kubesched" else (ROOT / name, to / name)
        target.mkdir(parents=True, exist_ok=True)
        for part in parts:
            if (source / part).is_dir():
                shutil.copytree(source / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source / part, target / part)
    return to


def build(source: Path, out: Path, *targets: str, epoch: int = 1_700_000_000) -> None:
    """What the release builds: `hatchling build`, in the directory of the distribution."""
    chosen = [argument for target in targets for argument in ("--target", target)]
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), *chosen]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def build_both(source: Path, out: Path, **options: int) -> Path:
    build(source, out, **options)
    build(source / "sandbox", out, **options)
    return out


def environment_for(directory: Path, *names: str) -> Path:
    """A new environment with links to these distributions and all that they require; kubesched itself is left out."""
    venv.create(directory, symlinks=True)
    [packages] = (directory / "lib").glob("python*/site-packages")
    for name in _closure(names) - {"kubesched", "kubesched-sandbox"}:
        _link(name, packages)
    return directory


def install(directory: Path, *files: Path) -> Path:
    """A new environment with these files in it, and what kubesched requires."""
    pip(environment_for(directory, "kubesched"), "install", "--no-index", "--no-deps", *map(str, files))
    return directory


def pip(environment: Path, *arguments: str, cwd: Path | None = None, **variables: str) -> str:
    command = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), *arguments]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _closure(names: Iterable[str]) -> set[str]:
    """The distributions, what they require, and what that requires."""
    waiting = list(names)
    found = set(waiting)
    while waiting:
        for requirement in map(Requirement, distribution(waiting.pop()).requires or ()):
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and requirement.name not in found:
                found.add(requirement.name)
                waiting.append(requirement.name)
    return found


def _link(name: str, packages: Path) -> None:
    for top in _tops(name):
        target = packages / top.name
        if not target.exists():
            target.symlink_to(top)


def _tops(name: str) -> Iterator[Path]:
    """Its files and folders directly in site-packages."""
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files or () if not file.parts[0].startswith("..")}:
        if top != "__pycache__":
            yield Path(str(installed.locate_file(top)))

"""Building the recorder inside a Kubernetes source tree, which stays as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

GO_FILES = Path(__file__).with_name("go")
_COMMAND = "cmd/zz-recorder"
_PLACES = {
    "access_dynamicresources.go": "pkg/scheduler/framework/plugins/dynamicresources",
    "access_preemption.go": "pkg/scheduler/framework/preemption",
    "access_queue.go": "pkg/scheduler/backend/queue",
    "access_queue_insides.go": "pkg/scheduler/backend/queue",
    "access_runtime.go": "pkg/scheduler/framework/runtime",
    "main.go": _COMMAND,
}
"""The package that a file becomes part of; all others are of pkg/scheduler."""

_OF_THE_QUEUE = re.compile("^(access_)?queue")
"""What is left out where no lives of the queue are recorded: it depends most on the insides of a release."""

_RELEASE = re.compile(r'DefaultKubeBinaryVersion\s*=\s*"1\.(\d+)"')


class MissingError(Exception):
    """Something that is needed is not there: what, and what to do."""


def source_tree(given: Path, tag: str, scratch: Path) -> Path:
    """The tree itself, or what a git directory has of the tag, checked out below scratch. Raises MissingError."""
    if (given / "pkg/scheduler/scheduler.go").exists():
        return given.resolve()
    git_dir = given / ".git" if (given / ".git").exists() else given
    if not (git_dir / "HEAD").exists():
        raise MissingError(f"{given} is neither a Kubernetes source tree nor a git directory of kubernetes/kubernetes")
    tree = (scratch / f"source-{tag}").resolve()
    if not (tree / "go.mod").exists():
        tree.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {"GIT_DIR": str(git_dir.resolve()), "GIT_INDEX_FILE": f"{tree}.index"}
        _git(["read-tree", tag], environment)
        # A copy may lack a few large files that the scheduler does not need: then git complains, and the rest is there.
        complaint = _git(["checkout-index", "--all", "--quiet", f"--prefix={tree}/"], environment, must=False)
        if not (tree / "pkg/scheduler/scheduler.go").exists():
            raise MissingError(f"git cannot check out {tag}:\n{complaint}")
    return tree


def _git(command: list[str], environment: dict[str, str], *, must: bool = True) -> str:
    done = subprocess.run(["git", *command], env=environment, capture_output=True, text=True)
    if done.returncode and must:
        raise MissingError(f"git {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stderr[-2000:]


def files_of_release(tree: Path) -> list[Path]:
    """What depends on the release: the folder of the tree's minor version, or of the last one before it."""
    said = _RELEASE.search((tree / "staging/src/k8s.io/component-base/version/base.go").read_text())
    minor = int(said[1]) if said else 0
    folders = {int(folder.name.removeprefix("v1.")): folder for folder in GO_FILES.resolve().glob("v1.*")}
    chosen = max((known for known in folders if known <= minor), default=min(folders))
    return sorted(folders[chosen].glob("*.go"))


def build(tree: Path, binary: Path, kinds: set[str]) -> None:
    """Compile the recorders of these kinds as if their files were in the tree. Raises MissingError."""
    if shutil.which("go") is None:
        wanted = (tree / ".go-version").read_text().strip() if (tree / ".go-version").exists() else "a recent one"
        raise MissingError(f"there is no go on the PATH; the tree is built with {wanted}")
    files = {
        tree / _PLACES.get(file.name, "pkg/scheduler") / f"zz_recorder_{file.name}": file
        for file in (*sorted(GO_FILES.resolve().glob("*.go")), *files_of_release(tree))
        if "queue" in kinds or not _OF_THE_QUEUE.search(file.name)
    }
    overlay = binary.with_suffix(".json")
    overlay.write_text(json.dumps({"Replace": {str(place): str(file) for place, file in files.items()}}))
    command = ["go", "build", "-mod=vendor", "-overlay", str(overlay), "-o", str(binary), f"./{_COMMAND}"]
    done = subprocess.run(command, cwd=tree, env=os.environ | {"CGO_ENABLED": "0"}, capture_output=True, text=True)
    if done.returncode:
        raise MissingError(f"the recorder does not build in {tree}:\n{done.stderr[-4000:]}")

"""Fills the templates of deploy/packages for Krew and Homebrew: `python -m tools.package_channels dist`.

Both install from one archive: the wheel, the locked requirements, and the command that installs them at its first call.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from tools.locked import ROOT, RUN

from kubesched import __version__

REPOSITORY = "https://github.com/kubesched/kubesched"
PACKAGES = ROOT / "deploy" / "packages"
WHEEL = f"kubesched-{__version__}-py3-none-any.whl"
ARCHIVE = f"kubectl-sched-{__version__}.tar.gz"
TEMPLATES = ("sched.yaml.j2", "kubesched.rb.j2")


def write(dist: Path, epoch: int) -> None:
    """The archive and what is filled from it, beside the wheel."""
    archive = _archive(dist / WHEEL, epoch)
    (dist / ARCHIVE).write_bytes(archive)
    known = {
        "version": __version__,
        "repository": REPOSITORY,
        "uri": f"{REPOSITORY}/releases/download/v{__version__}/{ARCHIVE}",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "wheel": WHEEL,
    }
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    for name in TEMPLATES:
        filled = environment.from_string((PACKAGES / name).read_text()).render(known)
        (dist / name.removesuffix(".j2")).write_text(filled)


def _archive(wheel: Path, epoch: int) -> bytes:
    """The same files give the same bytes."""
    files = {
        "LICENSE": (ROOT / "LICENSE", 0o644),
        "kubectl-sched": (PACKAGES / "kubectl-sched", 0o755),
        WHEEL: (wheel, 0o644),
        "requirements.txt": (RUN, 0o644),
    }
    tar, out = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, (file, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = file.stat().st_size, mode, epoch
            archive.addfile(entry, io.BytesIO(file.read_bytes()))
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=epoch) as compressed:
        compressed.write(tar.getvalue())
    return out.getvalue()


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(os.environ["SOURCE_DATE_EPOCH"]))

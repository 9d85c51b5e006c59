"""A package with a plugin, as if pip had installed it."""

from __future__ import annotations

from pathlib import Path

import pytest


def install_plugin(site: Path, monkeypatch: pytest.MonkeyPatch, source: str, *, name: str) -> None:
    """Put a package on the path whose entry point leads to this name in its source."""
    package = f"offering_{name.lower()}"
    (site / f"{package}.py").write_text(source)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kubesched.plugins]\noffered = {package}:{name}\n")
    monkeypatch.syspath_prepend(str(site))

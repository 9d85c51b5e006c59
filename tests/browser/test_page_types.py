"""The modules of the page, checked by the TypeScript compiler: their types are in comments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = HERE / "node_modules" / ".bin" / "tsc"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not COMPILER.exists(), reason="no TypeScript here (npm install --prefix tests/browser)"),
]


def test_types_of_the_page_agree() -> None:
    done = subprocess.run(
        [str(COMPILER), "-p", str(HERE / "tsconfig.json")], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout

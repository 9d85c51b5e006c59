"""The page that `simulate -o html` writes, looked at with a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
EXAMPLE = Path(__file__).parents[2] / "examples" / "nightly.yaml"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here (Debian package: chromium)")

MEASURE = """
<pre id="measured"></pre><script>
const boxes = [...document.querySelectorAll("svg rect")].map(r => r.getBoundingClientRect());
document.getElementById("measured").textContent = JSON.stringify({
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  plots: document.querySelectorAll("svg").length,
  drawn: boxes.filter(b => b.width > 0 && b.height > 0).length,
  outside: boxes.filter(b => b.right > innerWidth + 1).length,
  loaded: performance.getEntriesByType("resource").length,
  squeezed: [...document.querySelectorAll("th")].filter(t => t.getBoundingClientRect().height > 40).length,
});
</script></body>
"""


@pytest.mark.parametrize("width", [1200, 480])
def test_page_is_drawn_whole_and_loads_nothing(tmp_path: Path, width: int) -> None:
    result = CliRunner().invoke(main, ["simulate", "-f", str(EXAMPLE), "-o", "html"])
    assert result.exit_code == 0, result.output
    page = tmp_path / "page.html"
    page.write_text(result.stdout.replace("</body>", MEASURE))
    measured = _looked_at(page, tmp_path / "profile", width)
    assert measured["plots"] >= 3
    assert measured["drawn"] > 10
    assert measured["outside"] == measured["overflow"] == measured["loaded"] == measured["squeezed"] == 0


def _looked_at(page: Path, profile: Path, width: int) -> dict[str, Any]:
    """What the page's own script measured in the browser."""
    assert BROWSER is not None
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", *quiet, f"--user-data-dir={profile}"]
    shown = subprocess.run(
        [*command, f"--window-size={width},900", "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    found = re.search(r'<pre id="measured">(.*?)</pre>', shown)
    assert found is not None, shown[-500:]
    measured: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measured


SEARCH = """
<pre id="measured"></pre><script>
const box = document.querySelector("#search input");
box.value = "HOTFIX";
box.dispatchEvent(new Event("input"));
setTimeout(() => {
  const shown = [...document.querySelectorAll("tbody tr")].filter(row => !row.hidden).map(row => row.textContent);
  const said = document.querySelector("#search span").textContent;
  document.getElementById("measured").textContent = JSON.stringify({ said, shown });
}, 400);
</script></body>
"""


def test_search_leaves_the_rows_that_have_the_text(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["simulate", "-f", str(EXAMPLE), "-o", "html"])
    page = tmp_path / "page.html"
    page.write_text(result.stdout.replace("</body>", SEARCH))
    measured = _looked_at(page, tmp_path / "profile", 1200)
    assert measured["shown"]
    assert all("hotfix" in row for row in measured["shown"])
    assert measured["said"].startswith(f"{len(measured['shown'])} of ")
